// Finds cells of a stacked tensor (layers or experts) that have another cell's elements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/maps/held_tensor.h"

namespace shw {

// Describes layers or experts in a wrong order; nullopt if the order is right or a cell has foreign
// content.
std::optional<std::string> wrong_stack(const HeldTensor& there, const HeldTensor& expected,
                                       const RowLayout& layout);

// "in layer 1", "in layers 0 and 2"; empty for all cells. `cells` must be sorted.
std::string where_in_stack(const std::vector<std::size_t>& cells, const Extents& lead,
                           const RowLayout& layout);

}  // namespace shw
