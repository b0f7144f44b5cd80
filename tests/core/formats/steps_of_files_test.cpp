// Files of one save that record a different step than the others.
#include "core/formats/common/steps_of_files.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("steps of files: files that agree or record nothing raise nothing") {
  MixedStepsCheck steps;
  CHECK_FALSE(steps.finding("iteration").has_value());
  steps.add("a", 100);
  steps.add("b", 100);
  steps.add("c", std::nullopt);
  CHECK_FALSE(steps.finding("iteration").has_value());
}

TEST_CASE("steps of files: the odd files are named, and all where none is odd") {
  MixedStepsCheck steps;
  steps.add("a", 100);
  steps.add("b", 90);
  auto tied = steps.finding("iteration");
  REQUIRE(tied.has_value());
  CHECK(tied->rule == "mixed-saves");
  CHECK(tied->subjects == std::vector<std::string>{"b", "a"});
  steps.add("c", 100);
  auto clear = steps.finding("iteration");
  REQUIRE(clear.has_value());
  CHECK(clear->subjects == std::vector<std::string>{"b"});
}
