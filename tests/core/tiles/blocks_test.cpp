#include "core/tiles/blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/tiles/exact_tiling.h"

using namespace shw;

TEST_CASE("blocks cover an array exactly once and are as small as asked for") {
  std::mt19937 dice(4);
  for (int round = 0; round < 600; ++round) {
    Extents sizes(dice() % 5);
    for (auto& size : sizes) size = static_cast<std::int64_t>(dice() % 9);
    Extents order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), dice);
    if (dice() % 3 == 0) order.clear();
    auto most = static_cast<std::int64_t>(dice() % 200);
    Blocks blocks{sizes, block_sizes(sizes, most, order)};
    std::vector<Box> boxes;
    while (blocks.next()) {
      boxes.push_back(blocks.block);
      CHECK(*volume(blocks.block.sizes) <= std::max<std::int64_t>(most, 1));
    }
    CHECK(tiles_exactly(boxes, sizes));
    CHECK(blocks.count() == boxes.size());
    for (std::size_t i = 0; i < boxes.size(); i += 3) {
      blocks.go_to(i);
      REQUIRE(blocks.next());
      CHECK(blocks.block == boxes[i]);
      CHECK(blocks.next() == (i + 1 < boxes.size()));
      if (i + 1 < boxes.size()) CHECK(blocks.block == boxes[i + 1]);
    }
    CHECK(boxes.empty() == (*volume(sizes) == 0));
    CHECK(std::is_sorted(boxes.begin(), boxes.end(),
                         [](const Box& a, const Box& b) { return a.offsets < b.offsets; }));
  }
}

TEST_CASE("blocks are runs of the array unless something is in another order") {
  CHECK(block_sizes(Extents{8, 4, 5}, 45, {}) == Extents{2, 4, 5});
  CHECK(block_sizes(Extents{8, 4, 5}, 45, Extents{2, 1, 0}) == Extents{2, 4, 5});
  CHECK(block_sizes(Extents{8, 4, 5}, 12, {}) == Extents{1, 2, 5});
  // Both sides of a transpose get runs of a thousand elements.
  CHECK(block_sizes(Extents{1 << 15, 1 << 15}, 1 << 20, Extents{0, 1}) == Extents{1024, 1024});
  // A short side is taken whole, and the other side gets longer.
  CHECK(block_sizes(Extents{16, 1 << 20}, 1 << 20, Extents{0, 1}) == Extents{16, 1 << 16});
}
