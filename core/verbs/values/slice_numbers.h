// Requests for a slice of a tensor, and the resulting values and statistics.
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

inline constexpr std::int64_t kMaxLooked = std::int64_t{4} << 20;  // elements
inline constexpr std::int64_t kMaxCellRows = 160, kMaxCellColumns = 256;
inline constexpr std::int64_t kMaxTableRows = 64, kMaxTableColumns = 16;

// For one dimension: the positions that are shown, or the fixed index.
struct DimRange {
  std::int64_t first = 0, last = 1;
  bool shown = false;
  friend bool operator==(const DimRange&, const DimRange&) = default;
};
// At most two dimensions are shown: the first downwards, the second across; a single one across.
struct ValuesRequest {
  std::vector<DimRange> dims;  // empty: the slice with the most elements
  bool transposed = false;     // second dimension downwards
  friend bool operator==(const ValuesRequest&, const ValuesRequest&) = default;
};
// An element of a slice by its indices along the rows and the columns.
struct ValuePlace {
  std::int64_t row = 0, column = 0;
  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};
// Combines several elements: the one of greatest magnitude, and whether any is not finite.
struct ValueCell {
  float value = 0;
  bool seen = false, nan = false, infinite = false, missing = false, unread = false;
};

struct SliceValues {
  TensorId tensor{};
  Dtype dtype = Dtype::kUnknown;
  ValuesRequest ask;                   // as executed
  int row_dim = -1, column_dim = -1;   // -1: none
  std::int64_t rows = 1, columns = 1;  // of the window
  std::int64_t first_row = 0, first_column = 0;
  std::int64_t sampled_rows = 0, sampled_columns = 0;  // evenly spaced if fewer than the window's

  std::int64_t cell_rows = 0, cell_columns = 0;
  std::vector<ValueCell> cells;  // row-major; empty for non-numeric dtypes
  float greatest = 0;            // greatest finite magnitude
  Statistics statistics;         // of the elements that were examined and exist
  std::int64_t looked = 0, missing = 0,
               unread = 0;  // numbers of elements: examined, in no tile, unreadable

  std::int64_t table_rows = 0, table_columns = 0;
  std::vector<std::string> table;   // from the window's corner; empty text: no element
  std::optional<Error> error;       // first read error
  std::optional<ValuePlace> found;  // the element that was searched for
  bool is_all() const { return sampled_rows == rows && sampled_columns == columns; }
};

// B - A for examined elements that both have.
struct ValuesDifference {
  SliceValues values;          // float64; its statistics are those of the differences
  std::int64_t differing = 0;  // in bits, or in values if dtypes differ
  double greatest = 0;         // greatest magnitude of finite differences
  bool has_numbers = true;     // false: only `differing` is known
  bool counts = true;
};

}  // namespace shw::verbs
