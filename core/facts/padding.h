// Rows that say nothing: what a save with another tensor-parallel size puts at the end of the
// vocabulary (spec/failures.md 8, N7).
#pragma once

#include <cstdint>

#include "core/formats/items.h"

namespace shw {

// Rows from `begin` on are all zeros, or (`or_identical`) one row over and over, at least two of
// them. `values` have rows, and `begin` is one of them.
bool is_padding(const TensorValues& values, std::int64_t begin, bool or_identical);

}  // namespace shw
