// Holes between the recorded tiles of a tensor. A repair that does not fill them reports them.
#pragma once

#include <optional>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

// Boxes that no tile of a tensor covers; nullopt if a tile is not inside the tensor.
std::optional<std::vector<Box>> saved_holes_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw
