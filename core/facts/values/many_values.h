// Tensors that hold more than a few different values: no constants, no fresh norms. They are read
// together and as they lie on disk, each no further than it takes to know, and nothing is held but
// the few values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// In the order of `tensors`, each of a dtype of has_values(). What cannot be read of one says
// nothing for it. Where it was cancelled nobody looks at what is found.
std::vector<bool> have_more_values(const CheckInput& input, std::span<const TensorId> tensors,
                                   std::size_t few);

}  // namespace shw
