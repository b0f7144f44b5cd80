// What was learned tensor by tensor as the rows of a map: patterns with counters, and which names
// tell rows with the same names apart.
#pragma once

#include "core/learn/folded_map.h"
#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

FoldedMap fold_rows(const LearnSide& from, const LearnSide& to, const LearnedRows& learned);

}  // namespace shw
