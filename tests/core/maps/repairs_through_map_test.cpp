// Repairs tensors from their own bytes.
#include "core/maps/repairs_through_map.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace shw;

namespace {

using Order = std::vector<std::int64_t>;

// 0, 1, 2, ... as bytes: all elements differ.
LoadedTensor count_up(const Extents& shape) {
  LoadedTensor out{Dtype::kUint8, shape, Bytes(static_cast<std::size_t>(volume(shape).value()))};
  for (std::size_t i = 0; i < out.bytes.size(); ++i) out.bytes[i] = static_cast<std::byte>(i);
  return out;
}

// Row i of the result is row order[i].
LoadedTensor with_rows(const LoadedTensor& from, const Order& order) {
  LoadedTensor out = from;
  const std::size_t row = from.bytes.size() / order.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto at = from.bytes.begin() + static_cast<std::ptrdiff_t>(row) * order[i];
    std::copy_n(at, row, out.bytes.begin() + static_cast<std::ptrdiff_t>(row * i));
  }
  return out;
}

LoadedTensor turned(const LoadedTensor& from) {
  LoadedTensor out{from.dtype, {from.shape[1], from.shape[0]}, from.bytes};
  const auto rows = static_cast<std::size_t>(from.shape[0]);
  const auto columns = static_cast<std::size_t>(from.shape[1]);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out.bytes[c * rows + r] = from.bytes[r * columns + c];
  }
  return out;
}

constexpr TensorId kTensor{7};

}  // namespace

TEST_CASE("rearranged: rows in another order are found in the largest blocks") {
  const LoadedTensor there = count_up({12, 4});
  const LoadedTensor expected = with_rows(there, {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  const auto found = diagnose_rearrangement(kTensor, there, expected);
  REQUIRE(found.has_value());
  const auto* permuted = std::get_if<BlocksPermuted>(&*found);
  REQUIRE(permuted != nullptr);
  CHECK(permuted->tensor == kTensor);
  CHECK(permuted->block == 6);
  CHECK(permuted->order == Order{1, 0});
}

TEST_CASE("rearranged: equal rows are each used once") {
  LoadedTensor there = count_up({4, 2});
  std::copy_n(there.bytes.begin(), 2, there.bytes.begin() + 6);  // rows 0 and 3 are equal
  const auto found = diagnose_rearrangement(kTensor, there, with_rows(there, {1, 0, 3, 2}));
  REQUIRE(found.has_value());
  const Order& order = std::get<BlocksPermuted>(*found).order;
  CHECK(order.size() == 4);
  CHECK(std::accumulate(order.begin(), order.end(), std::int64_t{0}) == 6);
  CHECK(with_rows(there, order).bytes == with_rows(there, {1, 0, 3, 2}).bytes);
  // One slice occurs twice, and another one is missing.
  CHECK_FALSE(diagnose_rearrangement(kTensor, there, with_rows(there, {1, 1, 0, 2})).has_value());
}

TEST_CASE("rearranged: a transposed matrix is turned back") {
  const LoadedTensor there = count_up({3, 5});
  const auto found = diagnose_rearrangement(kTensor, there, turned(there));
  REQUIRE(found.has_value());
  CHECK(std::get<Transposed>(*found).expected == Extents{5, 3});
}

TEST_CASE("rearranged: columns in another order are found") {
  const LoadedTensor there = count_up({5, 4});
  const LoadedTensor expected = turned(with_rows(turned(there), {2, 3, 0, 1}));
  const auto found = diagnose_rearrangement(kTensor, there, expected);
  REQUIRE(found.has_value());
  const auto& permuted = std::get<BlocksPermuted>(*found);
  CHECK(permuted.dim == 1);
  CHECK(permuted.order == Order{1, 0});
}

TEST_CASE("rearranged: other elements, dtypes and sizes are not put right") {
  const LoadedTensor there = count_up({4, 4});
  LoadedTensor other = with_rows(there, {1, 0, 2, 3});
  other.bytes[15] = std::byte{99};
  CHECK_FALSE(diagnose_rearrangement(kTensor, there, other).has_value());
  LoadedTensor cast = with_rows(there, {1, 0, 2, 3});
  cast.dtype = Dtype::kInt8;
  CHECK_FALSE(diagnose_rearrangement(kTensor, there, cast).has_value());
  CHECK_FALSE(diagnose_rearrangement(kTensor, there, count_up({4, 3})).has_value());
  CHECK_FALSE(diagnose_rearrangement(kTensor, count_up({0, 4}), count_up({0, 4})).has_value());
}
