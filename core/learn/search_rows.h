// Finds which tensors of one checkpoint make each tensor of another, from hashes of their lines
// alone. What is found is a candidate: prove_map.h holds it against the bytes.
#pragma once

#include <span>
#include <vector>

#include "core/learn/line_hashes.h"
#include "core/maps/bind_map.h"

namespace shw {

// The lines of one side's tensors, by the number of the tensor.
struct SideLines {
  LineKind kind = LineKind::kRows;
  std::span<const LineHashes> lines;
  std::span<const Dtype> dtypes;                // of the elements that were hashed
  std::span<const std::size_t> ndims;           // of the tensors
  const std::vector<bool>* left_out = nullptr;  // tensors that are not searched
};

// Tensors by their numbers; `from` by cell of `lead`, as in BoundRow.
struct FoundRow {
  std::vector<std::size_t> to;
  Extents lead = {};
  std::vector<std::vector<std::size_t>> from;
  std::vector<BoundOp> ops = {};
  std::size_t padded = 0;        // lines of padding of each cell
  bool is_plain_padding = true;  // each of them is one value
};

struct RowSearchResult {
  std::vector<FoundRow> rows;
  // Tensors of `to` that are slices of stacked tensors of `from`: the other way round they stack.
  std::size_t finer = 0;
  // Tensors of `to` that are a part of one of `from`: the other way round that is padded.
  std::size_t shorter = 0;
};

RowSearchResult search_rows(const SideLines& from, const SideLines& to);

}  // namespace shw
