// Finds what makes the tensors of one side from those of the other, tensor by tensor: by lines,
// then by columns, by rounded values, by values with 1 added, by the operations of their weights
// for biases, and last by name for tensors that hold one value.
#pragma once

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

// Learns the rows and marks explained tensors on both sides. `way`: in which the map is to be
// applied. An error only if cancelled.
Result<LearnedRows> learn_rows(LearnSide& from, LearnSide& to, MapDirection way,
                               Progress* progress);

// True if tensors of `from` are stacked or joined to make those of `to`.
bool is_finer_side(const LearnSide& from, const LearnSide& to);

}  // namespace shw
