// What is asked of a slice of a tensor, and what is known of its numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "core/tensor/dtype.h"
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

// B less A, element by element, of those that were looked at and are in both.
struct ValuesDifference {
  SliceValues values;          // float64; its statistics are those of the differences
  std::int64_t differing = 0;  // in their bits; in their values where the dtypes differ
  double greatest = 0;         // of the finite differences, their magnitude
  bool has_numbers = true;     // false: only `differing` can be told
  bool counts = true;
};

}  // namespace shw::verbs
