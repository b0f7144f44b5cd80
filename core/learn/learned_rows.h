// Rows that make the tensors of one side from those of the other, tensor by tensor.
#pragma once

#include <utility>
#include <vector>

#include "core/learn/search_rows.h"

namespace shw {

struct LearnedRow {
  FoundRow row;
  bool is_cast = false;     // dtypes of the two sides differ
  bool is_by_name = false;  // several tensors have these elements, so names decided
};

struct LearnedRows {
  std::vector<LearnedRow> rows;
  // Tensors with equal content on one side: the copy and its original.
  std::vector<std::pair<std::size_t, std::size_t>> from_copies, to_copies;
};

}  // namespace shw
