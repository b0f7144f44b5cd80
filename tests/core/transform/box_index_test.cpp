// Boxes found by the index, compared with testing every box.
#include <doctest/doctest.h>

#include <random>

#include "core/transform/box_index.h"

using namespace shw;

TEST_CASE("boxes of any lengths are found where they meet another, in their order, and once") {
  std::mt19937_64 dice(20);
  for (int round = 0; round < 200; ++round) {
    const std::size_t dim = dice() % 2;
    std::vector<Box> boxes;
    BoxIndex index(dim);
    for (std::uint32_t i = 0; i < dice() % 60; ++i) {
      Box box{{0, 0}, {100, 100}};
      box.offsets[dim] = static_cast<std::int64_t>(dice() % 300);
      box.sizes[dim] = static_cast<std::int64_t>(dice() % (dice() % 4 == 0 ? 300 : 5));
      index.add(box, i);
      boxes.push_back(box);
    }
    index.sort();
    for (int asked = 0; asked < 20; ++asked) {
      Box box{{0, 0}, {100, 100}};
      box.offsets[dim] = static_cast<std::int64_t>(dice() % 400);
      box.sizes[dim] = static_cast<std::int64_t>(1 + dice() % 40);
      std::vector<std::uint32_t> found;
      index.near(box, found);
      CHECK(std::is_sorted(found.begin(), found.end()));
      CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
      for (std::uint32_t i = 0; i < boxes.size(); ++i) {
        if (intersect(boxes[i], box)) CHECK(std::binary_search(found.begin(), found.end(), i));
      }
    }
  }
}

TEST_CASE("one long box behind many short ones is not near to them") {
  constexpr std::uint32_t kShort = 1000;
  BoxIndex index(0);
  for (std::uint32_t i = 0; i < kShort; ++i) index.add({{i + 5000}, {1}}, i);
  index.add({{0}, {5000}}, kShort);
  index.sort();
  std::vector<std::uint32_t> found;
  index.near({{5500}, {2}}, found);
  CHECK(found.size() == 2);
  CHECK(found.front() == 500);
  index.near({{4999}, {2}}, found);
  CHECK(found.size() == 2);
  CHECK(found.back() == kShort);
}
