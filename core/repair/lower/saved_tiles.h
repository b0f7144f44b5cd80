// What the tiles of a tensor leave out, as recorded: a repair that mends none of it tells it.
#pragma once

#include <optional>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// What no tile of a tensor covers; nothing where one is no box of it.
std::optional<std::vector<Box>> holes_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
