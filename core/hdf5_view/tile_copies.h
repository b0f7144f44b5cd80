// Replicated tiles: checks that replicas agree, and chooses a readable one.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/hdf5_view/mapped_tile.h"
#include "core/model/checkpoint.h"

namespace shw {

// A chunk, and a later one with an equal box.
using EqualBoxes = std::vector<std::pair<ChunkId, ChunkId>>;

// Why replicas of tiles in `chunks` cannot all be correct; empty if the readable ones are equal.
// Reads all of them.
std::string differing_copies_reason(const Checkpoint& checkpoint,
                                    const std::vector<ChunkId>& chunks, const EqualBoxes& equal);

// The first readable replica of a tile; `is_another` if it is not the first one.
std::variant<MappedTile, MappingFailure> map_any_copy(const Checkpoint& checkpoint, ChunkId chunk,
                                                      const EqualBoxes& equal, bool& is_another);

}  // namespace shw
