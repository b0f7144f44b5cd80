// Cells of a stacked tensor, which are layers and experts: which one holds another one's elements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/maps/held_tensor.h"

namespace shw {

// Layers or experts that stand in another order. Nothing where they do not, or where a cell holds
// what belongs to none.
std::optional<std::string> wrong_stack(const HeldTensor& there, const HeldTensor& expected,
                                       const RowLayout& layout);

// "in layer 1", "in layers 0 and 2"; empty where it is every cell. `cells`: in rising order.
std::string where_in_stack(const std::vector<std::size_t>& cells, const Extents& lead,
                           const RowLayout& layout);

}  // namespace shw
