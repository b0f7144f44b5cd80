#include "core/spec/spec_keys.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("spec keys: a misspelt key is named with the one that was meant") {
  auto spec = parse_spec(
      R"({"a": {"shape": [2], "dtpye": "float32"}, "b": {"shape": [2], "placement": ["Replicate"]},
          "c": {"shape": [2], "dtype": "float32", "type": "Parameter", "note": "kept"}})",
      "spec.json");
  REQUIRE(spec.has_value());
  const auto found = misspelt_keys(*spec);
  REQUIRE(found.size() == 2);
  CHECK(found[0].fqn == "a");
  CHECK(found[0].key == "dtpye");
  CHECK(found[0].meant == "dtype");
  CHECK(found[1].meant == "placements");
  auto refused = parse_spec(R"({"a": {"shpae": [2]}})", "spec.json");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("did you mean \"shape\"") != std::string::npos);
}
