#include "core/tiles/coverage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

using namespace shw;

namespace {

// The reference: counts for each element how many boxes contain it.
struct Painted {
  std::vector<int> times;
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  Extents strides;
};

bool holds(const FlatBoxes& boxes, std::size_t i, const Extents& at) {
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (at[d] < boxes.low[i * boxes.ndim + d] || at[d] >= boxes.high[i * boxes.ndim + d])
      return false;
  }
  return true;
}

Painted paint(const Extents& shape, const FlatBoxes& boxes) {
  Painted out;
  out.strides = row_major_strides(shape);
  auto count = static_cast<std::size_t>(*volume(shape));
  for (std::size_t element = 0; element < count; ++element) {
    Extents at(shape.size());
    auto rest = static_cast<std::int64_t>(element);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      at[d] = rest / out.strides[d];
      rest %= out.strides[d];
    }
    std::vector<std::uint32_t> here;
    for (std::uint32_t i = 0; i < boxes.size(); ++i) {
      if (holds(boxes, i, at)) here.push_back(i);
    }
    out.times.push_back(static_cast<int>(here.size()));
    for (std::size_t i = 0; i < here.size(); ++i) {
      for (std::size_t j = i + 1; j < here.size(); ++j) out.pairs.insert({here[i], here[j]});
    }
  }
  return out;
}

void compare(const Extents& shape, const FlatBoxes& boxes) {
  Painted painted = paint(shape, boxes);
  TilingDefects defects = find_defects(shape, boxes);
  REQUIRE(defects.complete);
  std::vector<int> missing(painted.times.size(), 0);
  for (const Box& gap : defects.gaps) {
    REQUIRE(is_inside(gap.offsets, gap.sizes, shape));
    FlatBoxes one{shape.size(), {}, {}, {}};
    one.add(gap.offsets, gap.sizes, 0);
    Painted cells = paint(shape, one);
    for (std::size_t i = 0; i < missing.size(); ++i) missing[i] += cells.times[i];
  }
  std::int64_t holes = 0;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    int expected = painted.times[i] == 0 ? 1 : 0;
    holes += expected;
    if (missing[i] != expected) FAIL("element " << i << " is in " << missing[i] << " gaps");
  }
  CHECK(defects.missing == holes);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Overlap& overlap : defects.overlaps)
    CHECK(pairs.insert({overlap.first, overlap.second}).second);
  // If one box covers a whole region, pairs among the others need not be listed: the result may be
  // a subset, but not empty, and without wrong pairs.
  CHECK(pairs.empty() == painted.pairs.empty());
  CHECK(std::includes(painted.pairs.begin(), painted.pairs.end(), pairs.begin(), pairs.end()));
  bool exact =
      std::all_of(painted.times.begin(), painted.times.end(), [](int n) { return n == 1; });
  if (is_full_grid(shape, boxes)) CHECK(exact);
}

struct Dice {
  std::mt19937_64 engine;
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }
};

// A tiling by random cuts of boxes: exact, and mostly not a grid.
std::vector<Box> random_tiling(Dice& dice, const Extents& shape, int cuts) {
  std::vector<Box> boxes{whole(shape)};
  for (int i = 0; i < cuts; ++i) {
    auto which = static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(boxes.size()) - 1));
    auto d = static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(shape.size()) - 1));
    Box& box = boxes[which];
    if (box.sizes[d] < 2) continue;
    std::int64_t first = dice(1, box.sizes[d] - 1);
    Box second = box;
    second.offsets[d] += first;
    second.sizes[d] -= first;
    box.sizes[d] = first;
    boxes.push_back(second);
  }
  std::shuffle(boxes.begin(), boxes.end(), dice.engine);
  return boxes;
}

FlatBoxes flat(std::size_t ndim, const std::vector<Box>& boxes) {
  FlatBoxes out{ndim, {}, {}, {}};
  for (std::uint32_t i = 0; i < boxes.size(); ++i) out.add(boxes[i].offsets, boxes[i].sizes, i);
  return out;
}

}  // namespace

TEST_CASE("random boxes overlap and leave out what counting each element says") {
  Dice dice{std::mt19937_64(1)};
  for (int round = 0; round < 2000; ++round) {
    Extents shape(static_cast<std::size_t>(dice(1, 3)));
    for (auto& extent : shape) extent = dice(1, 7);
    FlatBoxes boxes{shape.size(), {}, {}, {}};
    auto count = static_cast<std::uint32_t>(dice(0, 14));
    for (std::uint32_t i = 0; i < count; ++i) {
      Extents offsets, sizes;
      for (auto extent : shape) {
        offsets.push_back(dice(0, extent - 1));
        sizes.push_back(dice(1, std::min<std::int64_t>(extent - offsets.back(), 3)));
      }
      boxes.add(offsets, sizes, i);
    }
    compare(shape, boxes);
  }
}

TEST_CASE("hundreds of boxes of up to four dims leave out what counting each element says") {
  Dice dice{std::mt19937_64(5)};
  for (int round = 0; round < 60; ++round) {
    Extents shape(static_cast<std::size_t>(dice(1, 4)));
    const std::int64_t side = std::array{400, 24, 10, 6}[shape.size() - 1];
    for (auto& extent : shape) extent = dice(side / 2, side);
    FlatBoxes boxes{shape.size(), {}, {}, {}};
    // Few cut positions, so that many borders are equal, or any position.
    const std::int64_t grain = dice(1, 3);
    for (std::uint32_t i = 0; i < 200; ++i) {
      Extents offsets, sizes;
      for (auto extent : shape) {
        offsets.push_back(dice(0, (extent - 1) / grain) * grain);
        sizes.push_back(dice(1, std::min<std::int64_t>(extent - offsets.back(), 3)));
      }
      boxes.add(offsets, sizes, i);
    }
    compare(shape, boxes);
  }
}

TEST_CASE("a tensor without dims is one element, missing where no box holds it") {
  FlatBoxes boxes{0, {}, {}, {}};
  TilingDefects none = find_defects(Extents{}, boxes);
  CHECK(none.missing == 1);
  CHECK(none.gaps == std::vector<Box>{Box{}});
  for (std::uint32_t i = 0; i < 10; ++i) {
    boxes.add(Extents{}, Extents{}, i);
    TilingDefects defects = find_defects(Extents{}, boxes);
    CHECK(defects.gaps.empty());
    CHECK(defects.missing == 0);
    CHECK(defects.overlaps.empty() == (i == 0));
  }
}

TEST_CASE("a tiling is exact and without a box, or with one grown, it is not") {
  Dice dice{std::mt19937_64(2)};
  for (int round = 0; round < 2000; ++round) {
    Extents shape(static_cast<std::size_t>(dice(1, 3)));
    for (auto& extent : shape) extent = dice(2, 9);
    std::vector<Box> boxes = random_tiling(dice, shape, static_cast<int>(dice(0, 30)));
    TilingDefects good = find_defects(shape, flat(shape.size(), boxes));
    CHECK(good.gaps.empty());
    CHECK(good.overlaps.empty());
    if (round % 2 == 0) {
      Box lost = boxes.back();
      boxes.pop_back();
      TilingDefects defects = find_defects(shape, flat(shape.size(), boxes));
      CHECK(defects.missing == volume(lost.sizes));
      // One box is missing, and exactly one is named.
      CHECK(defects.gaps == std::vector<Box>{lost});
    } else {
      Box& box = boxes.front();
      auto d = static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(shape.size()) - 1));
      if (box.offsets[d] == 0) continue;
      --box.offsets[d];
      ++box.sizes[d];
      CHECK_FALSE(find_defects(shape, flat(shape.size(), boxes)).overlaps.empty());
    }
    compare(shape, flat(shape.size(), boxes));
  }
}

TEST_CASE("a grid with uneven cuts is recognised, in any order") {
  Dice dice{std::mt19937_64(3)};
  std::vector<std::int64_t> rows = {0, 3, 4, 9}, columns = {0, 1, 6};
  std::vector<Box> boxes;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    for (std::size_t j = 0; j + 1 < columns.size(); ++j)
      boxes.push_back(
          {{rows[i], columns[j]}, {rows[i + 1] - rows[i], columns[j + 1] - columns[j]}});
  }
  std::shuffle(boxes.begin(), boxes.end(), dice.engine);
  CHECK(is_full_grid(Extents{9, 6}, flat(2, boxes)));
  CHECK_FALSE(is_full_grid(Extents{9, 7}, flat(2, boxes)));
  boxes.back() = boxes.front();
  CHECK_FALSE(is_full_grid(Extents{9, 6}, flat(2, boxes)));
}

TEST_CASE("one tile missing of a million, and one twice, are named") {
  FlatBoxes boxes{2, {}, {}, {}};
  const std::int64_t side = 1000;
  for (std::int64_t i = 0; i < side; ++i) {
    for (std::int64_t j = 0; j < side; ++j) {
      if (i == 400 && j == 77) continue;
      boxes.add(Extents{i * 3, j * 5}, Extents{3, 5}, static_cast<std::uint32_t>(boxes.size()));
    }
  }
  boxes.add(Extents{900, 900}, Extents{3, 5}, static_cast<std::uint32_t>(boxes.size()));
  TilingDefects defects = find_defects(Extents{side * 3, side * 5}, boxes);
  CHECK(defects.complete);
  CHECK(defects.gaps == std::vector<Box>{{{1200, 385}, {3, 5}}});
  REQUIRE(defects.overlaps.size() == 1);
  CHECK(defects.overlaps.front().box == Box{{900, 900}, {3, 5}});
}

TEST_CASE("boxes that all cross each other end the search instead of the patience") {
  Dice dice{std::mt19937_64(4)};
  FlatBoxes boxes{3, {}, {}, {}};
  const std::int64_t side = std::int64_t{1} << 40;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    Extents offsets, sizes;
    for (int d = 0; d < 3; ++d) {
      offsets.push_back(dice(0, side / 2));
      sizes.push_back(dice(1, side / 2 - 1));
    }
    boxes.add(offsets, sizes, i);
  }
  TilingDefects defects = find_defects(Extents{side, side, side}, boxes);
  CHECK_FALSE(defects.complete);
  CHECK(defects.overlaps.size() == kMaxOverlaps);
}
