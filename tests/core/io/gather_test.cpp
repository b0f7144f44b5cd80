#include "core/io/gather.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/program/random_program.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("a gathered box holds the elements that its strides name") {
  Dice dice(31);
  Bytes file(1 << 20);
  for (std::byte& byte : file) byte = static_cast<std::byte>(dice.pick(0, 255));
  auto source = memory_source("file", file);
  for (int round = 0; round < 800; ++round) {
    Extents sizes(static_cast<std::size_t>(dice.pick(0, 4)));
    for (auto& size : sizes) size = dice.pick(1, 5);
    std::int64_t element = std::int64_t{1} << dice.pick(0, 4);
    RandomStrides strides = random_strides(sizes, element, dice);
    // Distant runs are read one by one.
    if (!sizes.empty() && dice.one_in(4)) {
      if (strides.strides[0] > 0) strides.strides[0] += 50'000;
    }
    auto box = packed(sizes, strides.strides, static_cast<std::size_t>(element));
    REQUIRE(box);
    Bytes out(static_cast<std::size_t>(box->length));
    std::int64_t first = strides.first + dice.pick(0, 999);
    auto status =
        gather(*source, first, sizes, strides.strides, static_cast<std::size_t>(element), out);
    REQUIRE(status.has_value());
    bool equal = true;
    for (std::int64_t i = 0; i < *volume(sizes); ++i) {
      std::int64_t rest = i, from = first, at = box->offset;
      for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
        from += rest % sizes[d] * strides.strides[d];
        at += rest % sizes[d] * box->strides[d];
      }
      equal = equal && std::memcmp(out.data() + at, file.data() + from,
                                   static_cast<std::size_t>(element)) == 0;
    }
    CHECK(equal);
    std::size_t seen = 0;
    const bool is_all = for_each_run(
        first, sizes, strides.strides, static_cast<std::size_t>(element),
        [&](std::int64_t at, std::size_t done, std::int64_t length) {
          const auto bytes = static_cast<std::size_t>(length);
          const bool follows = done == seen;
          seen += bytes;
          return follows && std::memcmp(out.data() + done, file.data() + at, bytes) == 0;
        });
    CHECK(is_all);
    CHECK(seen == out.size());
  }
}

TEST_CASE("a strided box is read row-major, whatever the strides of its dims of one element") {
  Dice dice(32);
  Bytes file(1 << 16);
  for (std::byte& byte : file) byte = static_cast<std::byte>(dice.pick(0, 255));
  auto source = memory_source("file", file);
  for (int round = 0; round < 400; ++round) {
    Extents sizes(static_cast<std::size_t>(dice.pick(0, 4)));
    for (auto& size : sizes) size = dice.one_in(2) ? 1 : dice.pick(2, 4);
    const std::int64_t element = std::int64_t{1} << dice.pick(0, 3);
    const auto width = static_cast<std::size_t>(element);
    const RandomStrides strides = random_strides(sizes, element, dice);
    Bytes read;
    REQUIRE(read_strided(*source, strides.first, sizes, strides.strides, width, read));
    REQUIRE(read.size() == static_cast<std::size_t>(*volume(sizes)) * width);
    bool equal = true;
    for (std::int64_t i = 0; i < *volume(sizes); ++i) {
      std::int64_t rest = i, from = strides.first;
      for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
        from += rest % sizes[d] * strides.strides[d];
      equal = equal && std::memcmp(read.data() + i * element, file.data() + from, width) == 0;
    }
    CHECK(equal);
  }
}

TEST_CASE("a box that leaves its source is an error and one without elements reads nothing") {
  auto source = memory_source("file", Bytes(10));
  Bytes out(8);
  CHECK(gather(*source, 2, Extents{8}, Extents{1}, 1, out));
  CHECK_FALSE(gather(*source, 3, Extents{8}, Extents{1}, 1, out));
  CHECK_FALSE(gather(*source, 2, Extents{8}, Extents{-1}, 1, out));
  CHECK_FALSE(gather(*source, 0, Extents{2}, Extents{8}, 4, out));
  CHECK(packed(Extents{3, 0}, Extents{1, 1}, 4)->length == 0);
  CHECK(gather(*source, 99, Extents{0}, Extents{1}, 1, {}));
  CHECK_FALSE(packed(Extents{INT64_MAX, 3}, Extents{1, 1}, 4).has_value());
}
