// A chunk of a checkpoint as HDF5 can express it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/formats/items/items.h"
#include "core/model/checkpoint.h"

namespace shw {

// A tile with row-major elements: consecutively in `runs`, or, if `count` is set, as that many runs
// of `run` elements, `step` apart, inside the single given run.
struct MappedTile {
  Box box;
  std::vector<ByteRun> runs = {};
  std::int64_t count = 0, step = 0, run = 0;
};

// Why a tile has no mapping: its layout cannot be expressed, or it cannot be read.
struct MappingFailure {
  bool is_there = false;
  std::string why;
};
std::variant<MappedTile, MappingFailure> map_tile(const Checkpoint& checkpoint, ChunkId chunk);
// Maps a replica of the tile.
std::variant<MappedTile, MappingFailure> map_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                                  const ItemPlace& place);

}  // namespace shw
