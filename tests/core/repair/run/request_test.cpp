#include "core/repair/run/request.h"

#include <doctest/doctest.h>

#include "core/memory_store.h"
#include "core/repair/plan/stored_plan.h"

using namespace shw;

TEST_CASE("a request says its plan to the byte, wherever that is in it") {
  MemoryStore store;
  const std::string plan = R"({"plan": 1, "said": "x", "tensors": [{"a": [1, 2, "}"]}, 3]})";
  for (bool integrity : {false, true}) {
    auto text = request_to_json(store, "repair", plan, "/a \"b\"", integrity);
    REQUIRE(text.has_value());
    CHECK(verb_of_request(*text) == "repair");
    auto request = request_from_json(*text, "repair", "journal");
    REQUIRE(request.has_value());
    CHECK(request->plan == plan);
    CHECK(request->said == "/a \"b\"");
    CHECK(request->integrity == integrity);
    CHECK_FALSE(request_from_json(*text, "steps", "journal").has_value());
  }
  const std::string different_order =
      R"({"plan": {"a": [1, {"b": 2}]}, "verb": "repair", "checkpoint": "/c", "said": "c"})";
  auto request = request_from_json(different_order, "repair", "journal");
  REQUIRE(request.has_value());
  CHECK(request->plan == R"({"a":[1,{"b":2}]})");
  CHECK(request->checkpoint == "/c");
}

TEST_CASE("what is not a request is refused") {
  for (const char* text :
       {"", "[]", "7", R"({"verb": "repair", "checkpoint": "/c"})",
        R"({"verb": "repair", "checkpoint": "/c", "said": "c", "plan": {"a")",
        R"({"verb": "repair", "said": "c", "plan": {}})",
        R"({"x": {"plan": {}}, "verb": "repair", "checkpoint": "/c", "said": "c"})"}) {
    CAPTURE(text);
    CHECK_FALSE(request_from_json(text, "repair", "journal").has_value());
  }
}

TEST_CASE("a plan of many tiles is packed in its request and comes back to the byte") {
  MemoryStore store;
  std::string plan = R"({"plan": 1, "tensors": [)";
  for (int i = 0; i < 20'000; ++i) plan += std::to_string(i) + ", ";
  plan += "0]}";
  const std::string kept = encode_stored_plan(plan);
  REQUIRE_FALSE(kept.starts_with('{'));
  auto text = request_to_json(store, "repair", kept, "/a", true);
  REQUIRE(text.has_value());
  CHECK(text->size() < plan.size() / 2);
  CHECK(verb_of_request(*text) == "repair");
  auto request = request_from_json(*text, "repair", "journal");
  REQUIRE(request.has_value());
  CHECK(request->plan == plan);
  CHECK(request->integrity);
  // Exactly one of the two keys must be present and valid.
  for (
      const char* wrong :
      {R"({"verb": "repair", "checkpoint": "/c", "said": "c", "plan_zstd": "no base64"})",
       R"({"verb": "repair", "checkpoint": "/c", "said": "c", "plan_zstd": ""})",
       R"({"verb": "repair", "checkpoint": "/c", "said": "c", "plan_zstd": "AAAA", "plan": {}})"}) {
    CAPTURE(wrong);
    CHECK_FALSE(request_from_json(wrong, "repair", "journal").has_value());
  }
}
