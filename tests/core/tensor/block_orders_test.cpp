// Orders of blocks, next to what follows from their definitions.
#include "core/tensor/block_orders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace shw;

namespace {

using Order = std::vector<std::int64_t>;

// Tries every size from the largest down.
std::int64_t largest_by_trial(const Order& order) {
  const auto count = static_cast<std::int64_t>(order.size());
  auto stay_together = [&](std::int64_t size) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = order[static_cast<std::size_t>(i - i % size)];
      if (first % size != 0 || order[static_cast<std::size_t>(i)] != first + i % size) return false;
    }
    return true;
  };
  for (std::int64_t size = count; size > 1; --size) {
    if (count % size == 0 && stay_together(size)) return size;
  }
  return 1;
}

}  // namespace

TEST_CASE("block orders: the largest blocks are those that a trial of every size finds") {
  std::mt19937 dice(3);
  std::size_t coarse = 0;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t blocks = 1 + dice() % 6, size = 1 + i % 5;
    Order places(static_cast<std::size_t>(blocks)), order;
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), dice);
    for (std::int64_t place : places) {
      for (std::int64_t k = 0; k < size; ++k) order.push_back(place * size + k);
    }
    const std::int64_t together = mergeable_block_count(order);
    REQUIRE(together == largest_by_trial(order));
    coarse += together > size ? 1U : 0U;  // blocks that stay together by chance
    if (together == size) CHECK(order_of_merged_blocks(order, together) == places);
  }
  CHECK(coarse > 0);
}

TEST_CASE("block orders: the inverse undoes an order that names each block once") {
  const Order order{3, 0, 4, 1, 2};
  REQUIRE(is_permutation_of_indices(order));
  CHECK(inverse_of(order) == Order{1, 3, 4, 0, 2});
  CHECK(inverse_of(inverse_of(order)) == order);
  for (const Order& wrong : {Order{0, 0}, Order{0, 2}, Order{-1, 0}, Order{1, 1, 2}})
    CHECK_FALSE(is_permutation_of_indices(wrong));
  CHECK(is_permutation_of_indices(Order{}));
}

TEST_CASE("block orders: a grid is transposed only with its own number of rows") {
  const Order order{0, 3, 1, 4, 2, 5};  // of 3 x 2 blocks
  for (std::int64_t rows = 0; rows <= 7; ++rows)
    CHECK(is_grid_transpose(order, rows) == (rows == 3));
}
