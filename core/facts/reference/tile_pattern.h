// What it looks like that tiles lie where others belong.
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

// `shape` is the reference's.
TilePattern pattern_of(const TilePlaces& places, const Extents& shape);

// Where equal tiles lie along one dim and nothing else is cut: their order as blocks, block i of
// the truth is block order[i] of the image.
std::optional<BlockOrder> as_block_order(const TilePlaces& places, const Extents& shape);

}  // namespace shw
