// Tensors whose lines do not tell where they come from. Biases that were joined have the operations
// of a weight beside them, which their elements confirm. Tensors of one value, such as norms of
// ones, are matched by the names of what lies beside them: several tensors have their elements.
#pragma once

#include <vector>

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

void learn_by_name(LearnSide& from, LearnSide& to, std::vector<LearnedRow>& rows);

}  // namespace shw
