// Finds the rows of one tensor in another: a rounded master within its weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/items/items.h"

namespace shw {

// Rows [first, first + count) of `part` along the axis are rows [at, at + count) of `whole`.
struct RowRun {
  std::int64_t first = 0, count = 0, at = 0;
  bool operator==(const RowRun&) const = default;
};

struct Located {
  std::size_t dim = 0;
  std::int64_t at = 0;        // position in `whole`
  std::int64_t count = 0;     // number of rows
  std::int64_t elements = 0;  // elements in rows that occur only once: the evidence
};

// Casts `part` to the dtype of `whole`; shapes may differ in one extent. nullopt if it fits nowhere
// or at several places, or without such a cast.
std::optional<Located> locate_rows(const TensorValues& part, const TensorValues& whole);

// Runs of rows (first axis) of `part` that equal other rows of `whole`, for tensors of one shape.
// Rows in place and repeated rows are omitted.
std::vector<RowRun> locate_moved_rows(const TensorValues& part, const TensorValues& whole);

// Formats as "[6, 8)".
std::string rows_text(std::int64_t at, std::int64_t count);

}  // namespace shw
