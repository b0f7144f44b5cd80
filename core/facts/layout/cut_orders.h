// Tensors whose chunks lie as if the same mesh axes had cut in another order than the spec says:
// nothing is lost, nothing overlaps, and every row may be elsewhere (S4 order, S5 E2).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/facts/check_input.h"

namespace shw {

struct OtherOrder {
  TensorId tensor{};
  const SpecEntry* entry = nullptr;
  std::vector<std::size_t> expected;  // axes in the order in which the spec cuts
  std::vector<std::size_t> saved;     // and in which they were cut
  std::vector<Box> boxes;             // where each chunk belongs, in the order of the chunks
};

// Those that speak of damage: without a spec there are none, nor where another mesh saved it all.
std::vector<OtherOrder> find_other_orders(const CheckInput& input);

// "edp, then ep"
std::string order_text(const Mesh& mesh, const std::vector<std::size_t>& order);

}  // namespace shw
