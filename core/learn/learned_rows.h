// What makes tensors of one side of tensors of the other, tensor by tensor.
#pragma once

#include <utility>
#include <vector>

#include "core/learn/search_rows.h"

namespace shw {

struct LearnedRow {
  FoundRow row;
  bool is_cast = false;     // elements have another dtype on the two sides
  bool is_by_name = false;  // several tensors have these elements: names decided
};

struct LearnedRows {
  std::vector<LearnedRow> rows;
  // Tensors with the contents of another one of their side: the copy, and what it is a copy of.
  std::vector<std::pair<std::size_t, std::size_t>> from_copies, to_copies;
};

}  // namespace shw
