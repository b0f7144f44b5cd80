// Classifies how chunks have exchanged places.
#pragma once

#include <string>
#include <vector>

#include "core/facts/reference/block_order.h"
#include "core/facts/reference/tile_places.h"

namespace shw {

struct TilePattern {
  std::string family;  // evidence, never changes: "two-tiles", "grid-transposed",
                       // "axes-transposed", "reversed", "rotated", "unknown"
  std::string says;    // "two tiles have exchanged places"
};

// `shape` is that of the reference.
TilePattern pattern_of(const TilePlaces& places, const Extents& shape);

// The order as blocks, if equal chunks are exchanged along the only split dim: block i of the
// reference is block order[i] of the tensor.
std::optional<BlockOrder> block_order_from_tile_places(const TilePlaces& places,
                                                       const Extents& shape);

}  // namespace shw
