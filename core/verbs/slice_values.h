// What the numbers of a slice of a tensor are: a heat map, what they are like together, and a table
// of the first of them. Read box by box with a bound, so that a look at a terabyte takes as long as
// one at a megabyte; what was looked at is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/statistics.h"

namespace shw::verbs {

inline constexpr std::int64_t kMostLooked = std::int64_t{4} << 20;  // elements
inline constexpr std::int64_t kMostCellRows = 160, kMostCellColumns = 256;
inline constexpr std::int64_t kMostTableRows = 64, kMostTableColumns = 16;

// Of one dimension: the positions that are shown, or the one at which the others are held.
struct DimRange {
  std::int64_t first = 0, last = 1;
  bool shown = false;
  friend bool operator==(const DimRange&, const DimRange&) = default;
};
// At most two dimensions are shown: the first goes down, the second across; the only one across.
struct ValuesAsk {
  std::vector<DimRange> dims;  // empty: all of the slice that shows most
  bool transposed = false;     // the second goes down
  friend bool operator==(const ValuesAsk&, const ValuesAsk&) = default;
};
// "[17, 0:4096, 0:1280]", with " transposed" behind it; nothing where it cannot be read.
std::string to_text(const ValuesAsk& ask);
std::optional<ValuesAsk> parse_values_ask(std::string_view text);

// Several elements: the one of the largest magnitude, and whether any of them is not finite.
struct ValueCell {
  float value = 0;
  bool seen = false, nan = false, infinite = false, missing = false, unread = false;
};

struct SliceValues {
  TensorId tensor{};
  Dtype dtype = Dtype::kUnknown;
  ValuesAsk ask;                       // as it was carried out
  int row_dim = -1, column_dim = -1;   // -1: none
  std::int64_t rows = 1, columns = 1;  // of the window
  std::int64_t first_row = 0, first_column = 0;
  std::int64_t looked_rows = 0, looked_columns = 0;  // evenly spaced where they are fewer

  std::int64_t cell_rows = 0, cell_columns = 0;
  std::vector<ValueCell> cells;  // row-major; empty where the dtype has no numbers
  float greatest = 0;            // magnitude of a finite one
  Statistics statistics;         // of the elements that were looked at and are there
  std::int64_t looked = 0, missing = 0, unread = 0;  // elements: of them in no tile, not readable

  std::int64_t table_rows = 0, table_columns = 0;
  std::vector<std::string> table;  // from the window's corner; empty: no element there
  std::optional<Error> error;      // the first of what could not be read
  bool is_all() const { return looked_rows == rows && looked_columns == columns; }
};

// kUsage where the tensor has no such slice.
Result<SliceValues> slice_values(const Checkpoint& checkpoint, TensorId tensor,
                                 const ValuesAsk& ask, Progress* progress = nullptr);

}  // namespace shw::verbs
