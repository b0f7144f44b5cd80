// The index of a shard: where its pieces lie.
//
//   index = { offset(u64) length(u64) } for each piece, row-major [crc32c(u32)]
//
// A piece that was not written has 2^64 - 1 for both.
#pragma once

#include <vector>

#include "core/formats/orbax/stored_keys.h"
#include "core/formats/orbax/zarr_array.h"

namespace shw {

struct ShardPiece {
  Extents offsets;                       // in the array
  std::uint64_t offset = 0, length = 0;  // in the file of the shard
};

// Of the shard that begins at `offsets` of the array.
Result<std::vector<ShardPiece>> shard_pieces(const ByteSource& source, const StoredKey& shard,
                                             const ZarrArray& array, const Extents& offsets);

}  // namespace shw
