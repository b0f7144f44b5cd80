// Orders that the rows of a joined tensor have after known mistakes of converters.
#pragma once

#include <string>
#include <vector>

#include "core/maps/held_tensor.h"

namespace shw {

using RowOrder = std::vector<std::int64_t>;  // by row that is there: the row that was expected

struct KnownOrder {
  RowOrder from;
  std::string text;  // what happened, for people
};

// None of them leaves every row where it is. Empty where the layout has no parts.
std::vector<KnownOrder> known_orders(const RowLayout& layout);

// By row of the joined tensor: the part that it is of. Empty where the parts cannot be cut so.
std::vector<std::size_t> parts_of_rows(const RowLayout& layout);

}  // namespace shw
