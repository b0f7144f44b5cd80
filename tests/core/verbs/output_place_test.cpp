#include "core/verbs/output_place.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE(
    "output place: the result of a checkpoint of another machine needs a folder of this one") {
  const std::string step = "ssh://gpu7/runs/7/step_9000";
  auto beside = verbs::check_output_apart(step, step + "-safetensors");
  REQUIRE_FALSE(beside.has_value());
  CHECK(beside.error().message == "is on another machine, and the result is written on this one");
  CHECK(beside.error().advice == "name a folder of this machine with --out");
  CHECK(verbs::check_output_apart(step, "/tmp/step_9000-safetensors").has_value());
}
