// What the tiles of a tensor leave out, hold twice or reach beyond, as recorded: a repair that
// mends none of it tells it.
#pragma once

#include <optional>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// What no tile of a tensor covers; nothing where one is no box of it.
std::optional<std::vector<Box>> holes_of(const Checkpoint& checkpoint, TensorId tensor);
// None of its tiles holds elements that the tensor has no room for.
bool tiles_lie_inside(const Checkpoint& checkpoint, TensorId tensor);
// Two of its tiles, which are boxes of it, hold the same elements.
bool has_overlap(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
