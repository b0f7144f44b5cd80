// Metadata of an array in `.zarray` (zarr 2) or `zarr.json` (zarr 3). Supported: a regular grid of
// chunks, dense elements, compression by zstd, gzip, zlib or none.
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
  bool is_sharded = false;  // a grid chunk is a shard: inner chunks, and an index of them
  Extents inner = {};       // shape of an inner chunk
  bool index_at_end = true;
  bool index_has_checksum = false;
  ZarrPipe pipe = {};
  bool is_column_major = false;
  bool fill_is_zero = false;  // also if no fill value is given
  char separator = '.';
  bool begins_with_c = false;  // chunk keys are "c/0/1" instead of "0.1"
};

inline constexpr std::string_view kZarrTwo = ".zarray", kZarrThree = "zarr.json";

// nullopt for a group. kUnsupported names an unsupported form, kDamaged an impossible value.
Result<std::optional<ZarrArray>> parse_zarr_array(BytesView json, bool is_version_three);

// The grid position in a chunk's key, without the array's name; nullopt if it is not a chunk key.
std::optional<Extents> zarr_chunk_index(const ZarrArray& array, std::string_view key);

}  // namespace shw
