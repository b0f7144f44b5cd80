#include "core/base/natural_order.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("digits in names sort as numbers") {
  CHECK(natural_less("layers.2.w", "layers.10.w"));
  CHECK_FALSE(natural_less("layers.10.w", "layers.2.w"));
  CHECK(natural_less("layers.2", "layers.2.w"));
  CHECK_FALSE(natural_less("a", "a"));
  CHECK(natural_less("a01", "a1") != natural_less("a1", "a01"));
}
