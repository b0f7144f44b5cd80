// Checks by metadata alone whether the tiles of a tensor contain each element
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tiles/coverage.h"

namespace shw {

struct TileCover {
  bool exact = true;           // every element in exactly one tile
  bool has_more_gaps = false;  // there may be more gaps and overlaps than recorded
  std::int64_t missing = 0;    // elements in no tile
  std::vector<Box> gaps = {};  // sorted
  std::vector<Overlap> overlaps = {};
  // Why some bytes cannot be read: a tile outside the shape, or a missing file.
  std::optional<Error> error = {};
};
TileCover compute_tile_cover(const Checkpoint& checkpoint, TensorId tensor);

// Number of elements that are in a gap of one and not of the other; empty if that takes too long to
// compute.
std::optional<std::int64_t> differing_gap_elements(const TileCover& a, const TileCover& b);

// True for the same boxes in any order.
bool have_equal_boxes(const Checkpoint& a, TensorId one, const Checkpoint& b, TensorId two);

}  // namespace shw
