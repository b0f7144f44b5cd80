// Orders of slices of a tensor that training has changed since.
#include "core/facts/reference/slice_likeness.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/facts/in_pieces.h"

using namespace shw;
using namespace shw::test;

namespace {

using Numbers = std::vector<float>;

struct SlicesMoved {
  Extents shape;
  std::size_t dim = 0;
  std::vector<std::int64_t> place;  // of slice i of the image: the right place of its numbers

  Numbers moved(const Numbers& truth) const {
    const Extents strides = row_major_strides(shape);
    Numbers image(truth.size());
    for (std::int64_t i = 0; i < *volume(shape); ++i) {
      const std::int64_t at = i / strides[dim] % shape[dim];
      const std::int64_t from = place[static_cast<std::size_t>(at)];
      image[static_cast<std::size_t>(i)] =
          truth[static_cast<std::size_t>(i + (from - at) * strides[dim])];
    }
    return image;
  }
};

Numbers normal_numbers(const Extents& shape, std::mt19937& dice) {
  std::normal_distribution<float> normal;
  Numbers out(static_cast<std::size_t>(*volume(shape)));
  for (float& value : out) value = normal(dice);
  return out;
}

Numbers trained(Numbers numbers, float by, std::mt19937& dice) {
  std::normal_distribution<float> normal(0, by);
  for (float& value : numbers) value = 0.9F * value + 0.1F + normal(dice);
  return numbers;
}

std::optional<BlockOrder> told(const Extents& shape, const Numbers& image, const Numbers& truth,
                               std::mt19937& dice) {
  auto tensor = [&](const Numbers& numbers) {
    Bytes bytes(numbers.size() * sizeof(float));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return in_pieces(Dtype::kFloat32, shape, std::move(bytes), dice);
  };
  return match_slices_by_correlation(tensor(image), tensor(truth));
}

// Correct place of each slice of the image, from the given order.
std::vector<std::int64_t> places_in(const BlockOrder& order) {
  std::vector<std::int64_t> place(order.order.size() * static_cast<std::size_t>(order.block));
  for (std::size_t i = 0; i < order.order.size(); ++i) {
    for (std::int64_t k = 0; k < order.block; ++k)
      place[static_cast<std::size_t>(order.order[i] * order.block + k)] =
          static_cast<std::int64_t>(i) * order.block + k;
  }
  return place;
}

std::vector<std::int64_t> in_their_places(std::int64_t slices) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(slices));
  std::iota(place.begin(), place.end(), std::int64_t{0});
  return place;
}

SlicesMoved drawn_slices(std::mt19937& dice) {
  SlicesMoved one;
  const std::size_t ndim = 2 + dice() % 2;
  one.dim = dice() % ndim;
  for (std::size_t d = 0; d < ndim; ++d)
    one.shape.push_back(ndim == 2 ? 200 + static_cast<std::int64_t>(dice() % 300)
                                  : 15 + static_cast<std::int64_t>(dice() % 12));
  const std::int64_t block = 1 + static_cast<std::int64_t>(dice() % 5),
                     blocks = 2 + static_cast<std::int64_t>(dice() % 40);
  one.shape[one.dim] = block * blocks;
  std::vector<std::int64_t> order = in_their_places(blocks);
  while (std::is_sorted(order.begin(), order.end())) std::shuffle(order.begin(), order.end(), dice);
  for (std::int64_t i = 0; i < block * blocks; ++i)
    one.place.push_back(order[static_cast<std::size_t>(i / block)] * block + i % block);
  return one;
}

}  // namespace

TEST_CASE("slices of a trained tensor go where they came from, along any dimension") {
  std::mt19937 dice(21);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const SlicesMoved one = drawn_slices(dice);
    const Numbers truth = normal_numbers(one.shape, dice);
    auto order = told(one.shape, trained(one.moved(truth), 0.1F, dice), truth, dice);
    REQUIRE(order.has_value());
    CHECK(order->dim == one.dim);
    CHECK(places_in(*order) == one.place);
    CHECK(order->margin > 0.2);
    CHECK_FALSE(told(one.shape, trained(truth, 0.1F, dice), truth, dice).has_value());
    CHECK_FALSE(told(one.shape, normal_numbers(one.shape, dice), truth, dice).has_value());
  }
}

TEST_CASE("of slices nothing is said where one of them is like two, like none or says nothing") {
  std::mt19937 dice(22);
  constexpr std::ptrdiff_t kWide = 400;
  SlicesMoved one{{96, kWide}, 0, in_their_places(96)};
  std::rotate(one.place.begin(), one.place.begin() + 48, one.place.end());
  const Numbers truth = normal_numbers(one.shape, dice);
  const Numbers image = trained(one.moved(truth), 0.1F, dice);
  REQUIRE(told(one.shape, image, truth, dice).has_value());
  auto row = [](Numbers& numbers, std::ptrdiff_t i) { return numbers.begin() + i * kWide; };
  SUBCASE("two of the reference are equal") {
    Numbers twins = truth;
    std::copy_n(row(twins, 7), kWide, row(twins, 60));
    CHECK_FALSE(told(one.shape, trained(one.moved(twins), 0.1F, dice), twins, dice).has_value());
  }
  SUBCASE("one was written twice") {
    Numbers doubled = image;
    std::copy_n(row(doubled, 7), kWide, row(doubled, 60));
    CHECK_FALSE(told(one.shape, doubled, truth, dice).has_value());
  }
  SUBCASE("one is of another model") {
    Numbers strange = image;
    const Numbers other = normal_numbers({kWide}, dice);
    std::copy_n(other.begin(), kWide, row(strange, 50));
    CHECK_FALSE(told(one.shape, strange, truth, dice).has_value());
  }
  SUBCASE("one ends as another does") {
    Numbers mixed = image;
    std::swap_ranges(row(mixed, 50) + 300, row(mixed, 51), row(mixed, 80) + 300);
    CHECK_FALSE(told(one.shape, mixed, truth, dice).has_value());
  }
  SUBCASE("one is constant, or not finite") {
    for (float value : {0.0F, std::nanf(""), INFINITY}) {
      Numbers silent = image;
      std::fill_n(row(silent, 50), kWide, value);
      CHECK_FALSE(told(one.shape, silent, truth, dice).has_value());
    }
  }
  SUBCASE("a slice has too few elements") {
    const SlicesMoved few{{192, 40}, 0, {}};
    SlicesMoved swapped{few.shape, 0, in_their_places(192)};
    std::rotate(swapped.place.begin(), swapped.place.begin() + 96, swapped.place.end());
    const Numbers there = normal_numbers(few.shape, dice);
    CHECK_FALSE(told(few.shape, swapped.moved(there), there, dice).has_value());
  }
}

TEST_CASE("slices that repeat one direction are recognised by what is their own") {
  std::mt19937 dice(23);
  SlicesMoved one{{128, 256}, 0, in_their_places(128)};
  std::rotate(one.place.begin(), one.place.begin() + 64, one.place.end());
  const Numbers common = normal_numbers({256}, dice);
  for (float share : {0.5F, 8.0F}) {
    Numbers truth = normal_numbers(one.shape, dice);
    for (std::size_t i = 0; i < truth.size(); ++i) truth[i] += share * common[i % 256];
    auto order = told(one.shape, trained(one.moved(truth), 0.05F, dice), truth, dice);
    // With the larger share all slices are similar, so no order is reported.
    CHECK(order.has_value() == (share < 1));
    if (order) CHECK(places_in(*order) == one.place);
  }
}
