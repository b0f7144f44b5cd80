// The index of a shard: positions of its inner chunks (pieces).
//
//   index = { offset(u64) length(u64) } for each piece, row-major [crc32c(u32)]
//
// An unwritten inner chunk has 2^64 - 1 for both.
#pragma once

#include <vector>

#include "core/formats/orbax/stored_keys.h"
#include "core/formats/orbax/zarr_array.h"

namespace shw {

struct ShardPiece {
  Extents offsets;                       // in the array
  std::uint64_t offset = 0, length = 0;  // in the shard's file
};

// Inner chunks of the shard at `offsets` of the array.
Result<std::vector<ShardPiece>> shard_pieces(const ByteSource& source, const StoredKey& shard,
                                             const ZarrArray& array, const Extents& offsets);

}  // namespace shw
