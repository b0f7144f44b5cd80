// What `.zarray` (zarr 2) or `zarr.json` (zarr 3) says of an array, in as far as it is read: a
// regular grid of chunks, elements side by side, compressed by zstd, gzip or zlib or not at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/formats/orbax/zarr_codec.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct ZarrArray {
  Dtype dtype = Dtype::kUnknown;
  Extents shape, chunk;
  bool is_sharded = false;  // a chunk is a shard: pieces, and an index of where they lie
  Extents inner = {};       // of such a piece
  bool index_at_end = true;
  bool index_has_checksum = false;
  ZarrPipe pipe = {};
  bool is_column_major = false;
  bool fill_is_zero = false;  // nothing that was said counts as zero
  char separator = '.';
  bool begins_with_c = false;  // keys of chunks: "c/0/1" in place of "0.1"
};

inline constexpr std::string_view kZarrTwo = ".zarray", kZarrThree = "zarr.json";

// Nothing where it is a group and not an array. kUnsupported names a form that is not read,
// kDamaged what cannot be.
Result<std::optional<ZarrArray>> parse_zarr_array(BytesView json, bool is_version_three);

// The place in the grid that a chunk's key stands for, behind the array's own name; nothing where
// it is no key of a chunk.
std::optional<Extents> zarr_chunk_index(const ZarrArray& array, std::string_view key);

}  // namespace shw
