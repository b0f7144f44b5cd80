// Matches of pieces with places.
#include "core/facts/reference/match.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

using namespace shw;

TEST_CASE("match: the best place and its margin are those of the sorted similarities") {
  std::mt19937 dice(5);
  std::uniform_real_distribution<double> similarity(-1, 1);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> all(1 + dice() % 7);
    for (double& one : all) one = dice() % 5 == 0 ? kNoMatch : similarity(dice);
    all[dice() % all.size()] = similarity(dice);
    const BestMatch best = best_match(all.size(), [&](std::size_t place) { return all[place]; });
    std::vector<double> sorted = all;
    sorted.push_back(0);  // 0 is required even if all others are negative
    std::sort(sorted.begin(), sorted.end());
    const auto greatest = std::max_element(all.begin(), all.end());
    CHECK(best.place == static_cast<std::size_t>(greatest - all.begin()));
    const double second = *greatest > 0 ? sorted[sorted.size() - 2] : 0;
    CHECK(best.margin == doctest::Approx(*greatest - second));
  }
}

TEST_CASE("match: another order has one piece for each place and a piece out of place") {
  CHECK(Matching{{1, 2, 0}}.is_permuted_matching());
  CHECK_FALSE(Matching{{0, 1, 2}}.is_permuted_matching());
  CHECK_FALSE(Matching{{1, 1, 0}}.is_permuted_matching());
  Matching both;
  both.add({1, 0.5});
  both.add({0, 0.25});
  CHECK(both.margin == 0.25);
  CHECK(both.is_permuted_matching());
}

TEST_CASE("match: places by content are taken once each, the last added first") {
  PlacesByContent<std::string, int> places;
  for (int i = 0; i < 3; ++i) places.add("a", i);
  places.add("b", 7);
  CHECK(places.only("b") == 7);
  CHECK_FALSE(places.only("a"));
  CHECK_FALSE(places.only("c"));
  CHECK(places.last("a") == 2);
  for (int i = 3; i-- > 0;) CHECK(places.take("a") == i);
  CHECK_FALSE(places.take("a"));
  CHECK_FALSE(places.last("a"));
  CHECK(places.has("a"));
  CHECK_FALSE(places.has("c"));
  CHECK(places.take("b") == 7);
}

TEST_CASE("match: contents that have no hash are sorted") {
  PlacesByContent<std::tuple<int, std::string>> places;
  places.add({1, "x"}, 4);
  places.add({1, "y"}, 5);
  CHECK(places.only({1, "y"}) == 5);
  CHECK_FALSE(places.has({2, "x"}));
}
