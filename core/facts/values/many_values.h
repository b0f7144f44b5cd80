// Detects tensors with more than a few distinct values (not constants, not fresh norms).
// Tensors are read together in file order, each only as far as needed; only the few values are
// held.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

// One answer per tensor, whose dtype must have values. Unreadable parts are skipped. Results are
// invalid if cancelled.
std::vector<bool> have_more_values_than(const CheckInput& input, std::span<const TensorId> tensors,
                                        std::size_t few);

}  // namespace shw
