// Finds the rows that make the tensors of one side from those of the other. Tried in this order:
// equal lines, equal columns, rounded values, values with 1 added, the operations of the weight
// next to a bias, and names for tensors that repeat one value.
#pragma once

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

// Learns the rows and marks explained tensors on both sides. `way`: the direction in which the map
// will be applied. Fails only if cancelled.
Result<LearnedRows> learn_rows(LearnSide& from, LearnSide& to, MapDirection way,
                               Progress* progress);

// True if tensors of `from` are stacked or joined to make those of `to`.
bool has_unstacked_tensors(const LearnSide& from, const LearnSide& to);

}  // namespace shw
