// Row orders that known mistakes of converters produce in a joined tensor.
#pragma once

#include <vector>

#include "core/maps/loaded_tensor.h"
#include "core/maps/mistake.h"

namespace shw {

using RowOrder = std::vector<std::int64_t>;  // by saved row: the row that was expected there

struct KnownOrder {
  RowOrder from;
  Mistake mistake;
};

// Orders that move at least one row. Empty if the layout has no parts.
std::vector<KnownOrder> known_orders(const RowLayout& layout);

// For each row of the joined tensor, the index of the part (q, k, v, ..) that the row comes from.
// Empty if a part's rows are not a multiple of `layout.pieces`.
std::vector<std::size_t> parts_of_rows(const RowLayout& layout);

}  // namespace shw
