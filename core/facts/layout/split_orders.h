// Tensors whose chunks match a split by the same mesh axes in another order than the spec's. No
// element is missing or duplicated, but every row may be in the wrong place.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct DifferentOrder {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::vector<std::size_t> expected;  // axes in the spec's split order
  std::vector<std::size_t> saved;     // axes in the saved split order
  std::vector<Box> boxes;             // correct box of each chunk, in chunk order
};

// Finds tensors whose dims were split in another axis order than the spec says. Empty without a
// spec, or if all tensors agree on one other mesh: then another mesh saved them and nothing is
// damaged.
std::vector<DifferentOrder> find_different_orders(const CheckInput& input);

// Formats as "edp, then ep".
std::string order_text(const Mesh& mesh, const std::vector<std::size_t>& order);

}  // namespace shw
