// Repairs tensors from boxes of several tensors.
#include "core/maps/reassembled.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shw;

namespace {

// Rows of 16 bytes; all bytes of row i are `first` + i.
LoadedTensor rows_from(std::int64_t first, const Extents& shape) {
  LoadedTensor out{Dtype::kUint8, shape, {}};
  const auto count = static_cast<std::int64_t>(volume(shape).value()) / 16;
  for (std::int64_t i = 0; i < count; ++i)
    out.bytes.insert(out.bytes.end(), 16, static_cast<std::byte>(first + i));
  return out;
}

// Applies the moves.
Bytes put_together(const std::vector<BoxMove>& moves, const std::vector<LoadedTensor>& there,
                   const LoadedTensor& was) {
  Bytes out(was.bytes.size());
  const Extents strides = row_major_strides(was.shape);
  for (const BoxMove& move : moves) {
    const LoadedTensor& from = there[move.source];
    const Extents own = row_major_strides(from.shape);
    for (std::int64_t i = 0; i < volume(move.sizes).value(); ++i) {
      std::int64_t rest = i, source = 0, target = 0;
      for (std::size_t d = move.sizes.size(); d-- > 0;) {
        source += (move.from[d] + rest % move.sizes[d]) * own[d];
        target += (move.at[d] + rest % move.sizes[d]) * strides[d];
        rest /= move.sizes[d];
      }
      out[static_cast<std::size_t>(target)] = from.bytes[static_cast<std::size_t>(source)];
    }
    CHECK(is_equal_after_move(move, from, was));
  }
  return out;
}

}  // namespace

TEST_CASE("reassembled: rows that are in another tensor are found there") {
  // Two tensors with each other's odd rows.
  std::vector<LoadedTensor> expected{rows_from(0, {4, 16}), rows_from(10, {4, 16})};
  std::vector<LoadedTensor> there = expected;
  for (const std::ptrdiff_t row : {1, 3})
    std::swap_ranges(there[0].bytes.begin() + row * 16, there[0].bytes.begin() + row * 16 + 16,
                     there[1].bytes.begin() + row * 16);
  RowPlaces places;
  for (std::size_t i = 0; i < 2; ++i) places.add(i, there[i]);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto moves = places.reassembled(i, there[i], expected[i]);
    REQUIRE(moves.has_value());
    CHECK(put_together(*moves, there, expected[i]) == expected[i].bytes);
  }
}

TEST_CASE("reassembled: columns of one matrix in a stack go back, and the others stay") {
  LoadedTensor expected{Dtype::kUint8, {3, 4, 16}, Bytes(192)};
  for (std::size_t i = 0; i < 192; ++i) expected.bytes[i] = static_cast<std::byte>(i);
  std::vector<LoadedTensor> there{expected};
  for (std::ptrdiff_t row = 4; row < 8; ++row)
    std::rotate(there[0].bytes.begin() + row * 16, there[0].bytes.begin() + row * 16 + 8,
                there[0].bytes.begin() + row * 16 + 16);
  RowPlaces places;
  places.add(0, there[0]);
  const auto moves = places.reassembled(0, there[0], expected);
  REQUIRE(moves.has_value());
  CHECK(put_together(*moves, there, expected) == expected.bytes);
}

TEST_CASE("reassembled: pieces of biases are found in other biases") {
  LoadedTensor expected{Dtype::kUint8, {16}, Bytes(16)};
  for (std::size_t i = 0; i < 16; ++i) expected.bytes[i] = static_cast<std::byte>(i + 1);
  std::vector<LoadedTensor> there{expected, expected};
  std::fill(there[0].bytes.begin() + 8, there[0].bytes.end(), std::byte{99});
  std::fill(there[1].bytes.begin(), there[1].bytes.begin() + 8, std::byte{98});
  RowPlaces places;
  for (std::size_t i = 0; i < 2; ++i) places.add(i, there[i]);
  const auto moves = places.reassembled(0, there[0], expected);
  REQUIRE(moves.has_value());
  CHECK(put_together(*moves, there, expected) == expected.bytes);
}

TEST_CASE("reassembled: a row that is nowhere leaves the tensor as it is") {
  const LoadedTensor expected = rows_from(0, {4, 16});
  LoadedTensor there = expected;
  std::fill_n(there.bytes.begin() + 32, 16, std::byte{77});
  RowPlaces places;
  places.add(0, there);
  CHECK_FALSE(places.reassembled(0, there, expected).has_value());
}
