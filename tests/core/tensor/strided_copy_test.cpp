#include "core/tensor/strided_copy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

using namespace shw;

TEST_CASE("a strided copy equals the element by element one for any order of dimensions") {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    std::size_t ndim = random() % 5;
    const std::size_t item = std::size_t{1} << random() % 5;
    Extents sizes(ndim);
    for (auto& size : sizes) size = 1 + static_cast<std::int64_t>(random() % 7);
    if (ndim == 2 && round % 3 == 0)
      sizes = {1 + static_cast<std::int64_t>(random() % 150),
               1 + static_cast<std::int64_t>(random() % 150)};
    std::vector<std::size_t> order(ndim);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    Extents strides(ndim);
    std::int64_t step = 1 + static_cast<std::int64_t>(random() % 2);
    for (std::size_t d : order) {
      strides[d] = step;
      step *= sizes[d] + static_cast<std::int64_t>(random() % 2);
    }
    const std::int64_t offset = random() % 3;
    std::int64_t needed = storage_needed(sizes, strides, offset).value();
    std::vector<std::byte> source(static_cast<std::size_t>(needed) * item);
    for (auto& byte : source) byte = static_cast<std::byte>(random());
    std::int64_t count = *volume(sizes);
    std::vector<std::byte> fast(static_cast<std::size_t>(count) * item), slow(fast.size());

    Extents dense = row_major_strides(sizes);
    copy_strided({source, strides, offset}, {fast, dense, 0}, sizes, item);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t from = offset, rest = i;
      for (std::size_t d = ndim; d-- > 0;) {
        from += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      std::memcpy(slow.data() + static_cast<std::size_t>(i) * item,
                  source.data() + static_cast<std::size_t>(from) * item, item);
    }
    CHECK(fast == slow);
  }
}

TEST_CASE("a view's storage is counted without wrapping") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  CHECK(storage_needed(Extents{2, 3}, Extents{3, 1}, 0) == 6);
  CHECK(storage_needed(Extents{2, 3}, Extents{1, 2}, 4) == 10);
  CHECK(storage_needed(Extents{}, Extents{}, 5) == 6);
  CHECK(storage_needed(Extents{0, 3}, Extents{kHuge, kHuge}, 0) == 0);
  CHECK_FALSE(storage_needed(Extents{3}, Extents{kHuge}, 0).has_value());
  CHECK_FALSE(storage_needed(Extents{2}, Extents{-1}, 0).has_value());
  CHECK_FALSE(storage_needed(Extents{2}, Extents{1, 1}, 0).has_value());
  CHECK_FALSE(storage_needed(Extents{2}, Extents{1}, -1).has_value());
  CHECK(is_row_major(Extents{1, 5}, Extents{99, 1}));
  CHECK_FALSE(is_row_major(Extents{2, 5}, Extents{1, 2}));
}
