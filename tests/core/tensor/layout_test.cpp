#include "core/tensor/layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "core/tensor/strided_copy.h"

using namespace shw;

namespace {

using Bytes = std::vector<std::byte>;

std::int64_t pick(std::mt19937& dice, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(high - low + 1));
}

// Random strides in bytes: dims in random order, with gaps, some of them negative. `offset` is the
// byte of the first element, `length` the bytes that all elements span.
struct Strides {
  Extents strides;
  std::int64_t offset = 0, length = 0;
};
Strides random_strides(const Extents& sizes, std::int64_t item, bool backwards,
                       std::mt19937& dice) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), dice);
  Strides made{Extents(sizes.size()), 0, item};
  std::int64_t step = item * pick(dice, 1, 2);
  for (std::size_t d : order) {
    made.strides[d] = step;
    made.length += (sizes[d] - 1) * step;
    if (backwards && dice() % 3 == 0) {
      made.offset += (sizes[d] - 1) * step;
      made.strides[d] = -step;
    }
    step *= sizes[d] + pick(dice, 0, 1);
  }
  return made;
}

// The reference: copies one element after the other.
void copy_slowly(const Bytes& source, const Strides& from, Bytes& target, const Strides& to,
                 const Extents& sizes, std::size_t item) {
  std::int64_t count = *volume(sizes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t a = from.offset, b = to.offset, rest = i;
    for (std::size_t d = sizes.size(); d-- > 0;) {
      a += rest % sizes[d] * from.strides[d];
      b += rest % sizes[d] * to.strides[d];
      rest /= sizes[d];
    }
    std::memcpy(target.data() + b, source.data() + a, item);
  }
}

}  // namespace

TEST_CASE("a canonical pair copies what the pair copied element by element") {
  std::mt19937 dice(17);
  for (int round = 0; round < 1500; ++round) {
    const std::size_t item = std::size_t{1} << dice() % 5;
    Extents sizes(dice() % (round % 50 == 0 ? 14 : 6));
    for (auto& size : sizes) size = sizes.size() > 6 ? pick(dice, 1, 2) : pick(dice, 1, 6);
    if (sizes.size() == 2 && round % 3 == 0) sizes = {70, 45};
    auto width = static_cast<std::int64_t>(item);
    Strides from = random_strides(sizes, width, true, dice);
    Strides to = random_strides(sizes, width, true, dice);
    Bytes source(static_cast<std::size_t>(from.length));
    for (auto& byte : source) byte = static_cast<std::byte>(dice());
    // Bytes between the elements must not change.
    Bytes fast(static_cast<std::size_t>(to.length), std::byte{0x5a}), slow = fast, lookup = fast;
    for_each_canonical_pair(pair_of(sizes, from.strides, from.offset, to.strides, to.offset),
                            [&](const LayoutPair& part) {
                              copy_elements(source.data(), fast.data(), part, item);
                              CHECK(elements(part.source) == elements(part.target));
                              for (std::int64_t i = 0; i < elements(part.source); ++i)
                                std::memcpy(lookup.data() + byte_of(part.target, i),
                                            source.data() + byte_of(part.source, i), item);
                            });
    copy_slowly(source, from, slow, to, sizes, item);
    CHECK(fast == slow);
    CHECK(lookup == slow);
  }
}

TEST_CASE("a canonical pair has as few dimensions as it takes and widest target strides first") {
  auto canonical = [](const Extents& sizes, const Extents& from, const Extents& to) {
    PairDims pair = pair_of(sizes, from, 0, to, 0);
    canonicalise(pair);
    return pair;
  };
  CHECK(canonical({2, 3, 4}, {48, 16, 4}, {48, 16, 4}).ndim == 1);
  CHECK(canonical({2, 1, 4}, {16, 99, 4}, {16, 77, 4}).ndim == 1);
  CHECK(canonical({}, {}, {}).ndim == 0);
  CHECK(canonical({1, 1}, {4, 4}, {4, 4}).ndim == 0);
  CHECK(canonical({3, 0, 5}, {4, 4, 4}, {4, 4, 4}).dims[0].size == 0);
  // Two columns of a wider row stay two dimensions.
  CHECK(canonical({3, 2}, {20, 4}, {8, 4}).ndim == 2);
  PairDims turned = canonical({3, 5}, {20, 4}, {4, 12});
  REQUIRE(turned.ndim == 2);
  CHECK(turned.dims[0].target == 12);
  CHECK(turned.dims[0].source == 4);
  // Backwards on both sides is the same as forwards.
  PairDims back = pair_of(Extents{4}, Extents{-4}, 12, Extents{-4}, 12);
  canonicalise(back);
  CHECK(back.dims[0].source == 4);
  CHECK(back.source == 0);
  CHECK(back.target == 0);
}

static_assert([] {
  // Code shared with kernels works without a run-time library.
  PairDims pair;
  pair.ndim = 2;
  pair.dims[0] = {3, 8, 4};
  pair.dims[1] = {2, 4, 12};
  canonicalise(pair);
  LayoutPair layouts = innermost(pair, 0);
  return elements(layouts.source) == 6 && byte_of(layouts.source, 1) == 8 &&
         byte_of(layouts.target, 3) == 12;
}());
