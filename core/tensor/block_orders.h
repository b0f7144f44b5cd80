// Orders of equal blocks: block i of one sequence is block order[i] of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// True if each number below order.size() occurs once.
template <class Order>
bool is_permutation_of_indices(const Order& order) {
  std::vector<bool> is_named(order.size(), false);
  for (const auto number : order) {
    const auto at = static_cast<std::size_t>(number);  // a negative one becomes too large
    if (at >= is_named.size() || is_named[at]) return false;
    is_named[at] = true;
  }
  return true;
}

// Requires is_permutation_of_indices(): out[order[i]] = i.
template <class Order>
std::vector<std::int64_t> inverse_of(const Order& order) {
  std::vector<std::int64_t> out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

// The greatest n for which the order moves whole groups of n adjacent blocks, aligned to n before
// and after.
std::int64_t mergeable_block_count(ExtentsView order);
// The order expressed in groups of `together` blocks.
std::vector<std::int64_t> order_of_merged_blocks(ExtentsView order, std::int64_t together);

// True if block (i, j) of a grid with `rows` rows is at (j, i).
bool is_grid_transpose(ExtentsView order, std::int64_t rows);

}  // namespace shw
