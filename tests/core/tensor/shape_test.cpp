#include "core/tensor/shape.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("a box minus another is disjoint boxes that hold exactly the rest") {
  Box a{{0, 0, 0}, {4, 6, 5}};
  Box b{{1, 2, 0}, {2, 3, 9}};
  auto parts = subtract(a, b);
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    covered += *volume(parts[i].sizes);
    CHECK_FALSE(intersect(parts[i], b).has_value());
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(intersect(parts[i], parts[j]).has_value());
  }
  CHECK(covered == 4 * 6 * 5 - 2 * 3 * 5);
}

TEST_CASE("a volume that leaves 64 bits is not a number, unless an extent is zero") {
  CHECK_FALSE(volume(Extents{std::int64_t{1} << 62, 4}).has_value());
  CHECK(volume(Extents{std::int64_t{1} << 62, 4, 0}) == 0);
  CHECK_FALSE(volume(Extents{-1, 4}).has_value());
  CHECK(volume(Extents{}) == 1);
}
