// Resolves rows whose patterns match the same names: dense layers and MoE layers have one norm that
// has two destinations. Names that only one row's layers have distinguish them.
#pragma once

#include "core/learn/folded_map.h"
#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

// Sets `from_with` and `to_with` of rows, or lists names one by one, until each row matches exactly
// the tensors that it was learned from.
void resolve_row_conflicts(const LearnSide& from, const LearnSide& to, const LearnedRows& learned,
                           FoldedMap& folded);

}  // namespace shw
