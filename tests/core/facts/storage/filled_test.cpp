#include "core/facts/storage/filled.h"

#include <doctest/doctest.h>

#include "core/tiles/exact_tiling.h"

using namespace shw;

TEST_CASE("boxes that do not meet are added without a look at each other, however many") {
  std::vector<Box> boxes{{{1, 0}, {1, 4}}}, more;
  for (std::int64_t i = 1; i < 20'000; ++i) more.push_back({{2 * i + 1, 0}, {1, 4}});
  std::size_t looks = 0;
  CHECK(add_all_disjoint(boxes, more, looks));
  CHECK(boxes.size() == 20'000);
  CHECK(total_volume(boxes) == 80'000);
}

TEST_CASE("boxes that meet are counted once, and what is not counted is reported") {
  std::vector<Box> more;
  for (std::int64_t i = 0; i < 200; ++i) more.push_back({{i, 0}, {3, 4}});
  std::vector<Box> boxes;
  std::size_t looks = 1'000'000;
  CHECK(add_all_disjoint(boxes, more, looks));
  CHECK(are_disjoint(boxes));
  CHECK(total_volume(boxes) == 202 * 4);
  boxes.clear();
  looks = 100;
  CHECK_FALSE(add_all_disjoint(boxes, more, looks));
}

TEST_CASE("what two checkpoints filled is said of neither") {
  FilledTensor a{"w", {8}}, b{"w", {8}};
  a.fill = b.fill = "from";
  a.fill_from = b.fill_from = "w";
  a.fill_checkpoint = "/step_1";
  b.fill_checkpoint = "/step_2";
  FilledTensor into;
  merge_fill_source(into, a, true);
  CHECK(into.fill_checkpoint == "/step_1");
  merge_fill_source(into, a, false);
  CHECK(into.fill == "from");
  merge_fill_source(into, b, false);
  CHECK(into.fill == "mixed");
  CHECK(into.fill_checkpoint == "");
}
