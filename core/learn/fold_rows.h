// Folds learned rows, which are per tensor, into rows of a map: patterns with counters, and the
// names that distinguish rows with equal patterns.
#pragma once

#include "core/learn/folded_map.h"
#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

FoldedMap fold_rows(const LearnSide& from, const LearnSide& to, const LearnedRows& learned);

}  // namespace shw
