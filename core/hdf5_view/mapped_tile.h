// One chunk of a checkpoint as HDF5 can be told of it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/formats/items.h"
#include "core/model/checkpoint.h"

namespace shw {

// A tile whose elements lie in its row-major order: in `runs` one after the other, or, with
// `count`, as that many runs of `run` elements, `step` apart, in the one run that is given.
struct MappedTile {
  Box box;
  std::vector<ByteRun> runs = {};
  std::int64_t count = 0, step = 0, run = 0;
};

// Why there is no MappedTile: its bytes are there and lie in another form, or cannot be had.
struct NoMapping {
  bool is_there = false;
  std::string why;
};
std::variant<MappedTile, NoMapping> map_tile(const Checkpoint& checkpoint, ChunkId chunk);
// The same of a copy of the tile, which lies in another place.
std::variant<MappedTile, NoMapping> map_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                             const ItemPlace& place);

}  // namespace shw
