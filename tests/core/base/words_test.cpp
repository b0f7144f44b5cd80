#include "core/base/words.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("seconds are said in the unit that a person would use") {
  CHECK(human_seconds(0) == "0 ms");
  CHECK(human_seconds(0.0401) == "40 ms");
  CHECK(human_seconds(0.9996) == "1.0 s");
  CHECK(human_seconds(9.94) == "9.9 s");
  CHECK(human_seconds(9.96) == "10 s");
  CHECK(human_seconds(59.6) == "1 min");
  CHECK(human_seconds(3599) == "1 h");
  CHECK(human_seconds(48'000) == "13 h 20 min");
  CHECK(human_seconds(1e300).ends_with(" h 47 min"));
}

TEST_CASE("what takes any time at all is not said to take none") {
  CHECK(human_seconds(1e-9) == "1 ms");
  CHECK(human_seconds(0.0004) == "1 ms");
  CHECK(human_seconds(0.0014) == "1 ms");
}
