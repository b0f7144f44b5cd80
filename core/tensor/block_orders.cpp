#include "core/tensor/block_orders.h"

#include <numeric>

namespace shw {

std::int64_t mergeable_block_count(ExtentsView order) {
  auto together = static_cast<std::int64_t>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || order[i] != order[i - 1] + 1)
      together = std::gcd(std::gcd(together, static_cast<std::int64_t>(i)), order[i]);
  }
  return together;
}

std::vector<std::int64_t> order_of_merged_blocks(ExtentsView order, std::int64_t together) {
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < order.size(); i += static_cast<std::size_t>(together))
    out.push_back(order[i] / together);
  return out;
}

bool is_grid_transpose(ExtentsView order, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(order.size());
  if (rows < 1 || count % rows != 0) return false;
  const std::int64_t columns = count / rows;
  for (std::int64_t at = 0; at < count; ++at) {
    if (order[static_cast<std::size_t>(at)] != at % columns * rows + at / columns) return false;
  }
  return true;
}

}  // namespace shw
