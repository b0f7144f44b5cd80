// Row orders that known mistakes of converters produce in a joined tensor.
#pragma once

#include <string>
#include <vector>

#include "core/maps/held_tensor.h"

namespace shw {

using RowOrder = std::vector<std::int64_t>;  // by saved row: the row that was expected there

struct KnownOrder {
  RowOrder from;
  std::string text;  // describes the mistake for users
};

// Orders that move at least one row. Empty if the layout has no parts.
std::vector<KnownOrder> known_orders(const RowLayout& layout);

// By row of the joined tensor: its part. Empty if the parts cannot be split this way.
std::vector<std::size_t> parts_of_rows(const RowLayout& layout);

}  // namespace shw
