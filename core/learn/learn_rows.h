// Everything that makes tensors of one side of tensors of the other, tensor by tensor: by lines,
// then by columns, by rounded values, by the operations of their weights for biases, and last by
// name for tensors that hold one value.
#pragma once

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

// Marks what is explained on both sides. An error only if cancelled.
Result<LearnedRows> learn_rows(LearnSide& from, LearnSide& to, Progress* progress);

// Whether `from` is the side whose tensors are stacked or joined to make those of `to`.
bool is_finer_side(const LearnSide& from, const LearnSide& to);

}  // namespace shw
