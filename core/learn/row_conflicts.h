// Rows whose patterns fit the same names: dense layers and those with experts have one norm that
// goes to two places. Names that only the layers of one row have tell them apart.
#pragma once

#include "core/learn/folded_map.h"
#include "core/learn/learn_side.h"
#include "core/learn/learned_rows.h"

namespace shw {

// Gives rows `from_with` and `to_with`, or writes their names out one by one, until each takes the
// tensors that it was learned from.
void separate_rows(const LearnSide& from, const LearnSide& to, const LearnedRows& learned,
                   FoldedMap& folded);

}  // namespace shw
