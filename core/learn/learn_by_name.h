// Matches tensors whose lines do not tell their origin. Joined biases follow the operations of the
// weight next to them, confirmed by their elements. Tensors of one value, such as norms of ones,
// are matched by the names of their neighbours, because several tensors have the same elements.
#pragma once

#include <vector>

#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

void learn_by_name(LearnSide& from, LearnSide& to, std::vector<LearnedRow>& rows);

}  // namespace shw
