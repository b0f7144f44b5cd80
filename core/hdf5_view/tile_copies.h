// Tiles that were saved more than once: whether all of them hold the same, and which can be read.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/hdf5_view/mapped_tile.h"
#include "core/model/checkpoint.h"

namespace shw {

// A chunk, and one of an equal box behind it.
using EqualBoxes = std::vector<std::pair<ChunkId, ChunkId>>;

// Why copies of the tiles of `chunks` cannot all be right, in words; empty where those that can be
// read hold the same bytes. Reads both.
std::string why_copies_differ(const Checkpoint& checkpoint, const std::vector<ChunkId>& chunks,
                              const EqualBoxes& equal);

// The first copy of a tile that can be had; `is_another` where it is not the first one.
std::variant<MappedTile, NoMapping> map_any_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                                 const EqualBoxes& equal, bool& is_another);

}  // namespace shw
