// Finds which tensors of one checkpoint make each tensor of another, from hashes of their lines.
// The results are candidates: prove_map.h compares the bytes.
#pragma once

#include <span>
#include <vector>

#include "core/learn/line_hashes.h"
#include "core/maps/bind_map.h"

namespace shw {

// Lines of one side's tensors, by tensor number.
struct SideLines {
  LineKind kind = LineKind::kRows;
  std::span<const LineHashes> lines;
  std::span<const Dtype> dtypes;                // of the hashed elements
  std::span<const std::size_t> ndims;           // of the tensors
  const std::vector<bool>* left_out = nullptr;  // by tensor: true if it is not searched
};

// Tensors by number; `from` by cell of `lead`, as in BoundRow.
struct FoundRow {
  std::vector<std::size_t> to;
  Extents lead = {};
  std::vector<std::vector<std::size_t>> from;
  std::vector<BoundOp> ops = {};
  std::size_t padded = 0;        // number of padding lines per cell
  bool is_plain_padding = true;  // true: each of them has one value
};

struct RowSearchResult {
  std::vector<FoundRow> rows;
  // Number of tensors of `to` that are slices of stacked tensors of `from`: the reverse map stacks.
  std::size_t finer = 0;
  // Number of tensors of `to` that are a part of a tensor of `from`: the reverse map pads.
  std::size_t shorter = 0;
};

RowSearchResult search_rows(const SideLines& from, const SideLines& to);

}  // namespace shw
