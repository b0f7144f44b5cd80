// What the tiles of a tensor come to: each element once, or what is wrong with that. By metadata
// alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tiles/coverage.h"

namespace shw {

struct TileCover {
  bool exact = true;           // every element in one tile
  bool too_tangled = false;    // there may be more gaps and overlaps than stand here
  std::int64_t missing = 0;    // elements in no tile
  std::vector<Box> gaps = {};  // sorted
  std::vector<Overlap> overlaps = {};
  // Why some of its bytes cannot be there: a tile outside of the shape, a file that is gone.
  std::optional<Error> error = {};
};
TileCover cover_of(const Checkpoint& checkpoint, TensorId tensor);

// Elements that lie in a gap of one and not in one of the other; nothing where that is too much
// work to find out.
std::optional<std::int64_t> gaps_apart(const TileCover& a, const TileCover& b);

// The same boxes, in whatever order.
bool are_tiled_alike(const Checkpoint& a, TensorId one, const Checkpoint& b, TensorId two);

}  // namespace shw
