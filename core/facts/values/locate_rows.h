// Where the rows of one tensor lie in another: a master, rounded, slid over the weight (spec P16).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/items.h"

namespace shw {

// Rows [first, first + count) of `part` along the axis are rows [at, at + count) of `whole`.
struct RowRun {
  std::int64_t first = 0, count = 0, at = 0;
  bool operator==(const RowRun&) const = default;
};

struct Located {
  std::size_t dim = 0;
  std::int64_t at = 0;        // in `whole`
  std::int64_t count = 0;     // rows
  std::int64_t elements = 0;  // in rows that are there only once: what the answer rests on
};

// `part` cast to the dtype of `whole`; its shape differs in one extent at most. Nothing where it
// fits at no place or at several, or where there is no such cast.
std::optional<Located> locate_rows(const TensorValues& part, const TensorValues& whole);

// For tensors of one shape: rows of `part` (along the first axis) that are other rows of `whole`,
// as runs. Rows that stand where they belong, and such as are there twice, are left out.
std::vector<RowRun> moved_rows(const TensorValues& part, const TensorValues& whole);

// "[6, 8)"
std::string rows_text(std::int64_t at, std::int64_t count);

}  // namespace shw
