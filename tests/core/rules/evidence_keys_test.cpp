// The table of evidence keys, and its copy for programs in assets/schema.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/model/evidence.h"

using namespace shw;
using Json = nlohmann::json;

namespace {

// Types as the schema spells them, in the order of EvidenceTypes.
Json schema_of(EvidenceTypes types) {
  const Json all[] = {
      {{"type", "boolean"}},
      {{"type", "integer"}},
      {{"type", {"number", "string"}}},
      {{"type", "string"}},
      {{"$ref", "#/$defs/extents"}},
      {{"$ref", "#/$defs/names"}},
      {{"type", "array"}, {"items", {{"$ref", "#/$defs/box"}}}},
  };
  Json one = Json::array();
  for (std::size_t i = 0; i < std::size(all); ++i) {
    if ((static_cast<unsigned>(types) >> i & 1U) != 0) one.push_back(all[i]);
  }
  return one.size() == 1 ? one.front() : Json{{"anyOf", one}};
}

}  // namespace

TEST_CASE("evidence keys: the schema lists each with its types and what it says") {
  std::ifstream file(std::string(SHW_SOURCE_DIR) + "/assets/schema/shardwright-2.schema.json");
  const Json said = Json::parse(file)["$defs"]["evidence"]["properties"];
  CHECK(said.size() == evidence_keys().size());
  for (const EvidenceKey& key : evidence_keys()) {
    Json want = schema_of(key.types);
    want["description"] = key.says;
    CAPTURE("\"" + std::string(key.name) + "\": " + want.dump());
    const auto found = said.find(key.name);
    REQUIRE(found != said.end());
    CHECK(*found == want);
  }
}

TEST_CASE("evidence keys: each is snake_case, and says something in a few words") {
  for (const EvidenceKey& key : evidence_keys()) {
    CAPTURE(key.name);
    CHECK(std::all_of(key.name.begin(), key.name.end(), [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
    }));
    CHECK(key.says.size() >= 8);
    CHECK(key.says.size() <= 90);
  }
}

TEST_CASE("evidence keys: a value of another type, or of no key, is refused") {
  CHECK(is_evidence("offset", std::int64_t{3}));
  CHECK_FALSE(is_evidence("offset", std::string("3")));
  CHECK(is_evidence("said", true));
  CHECK(is_evidence("said", std::int64_t{3}));
  CHECK_FALSE(is_evidence("zzz", std::int64_t{3}));
  CHECK_FALSE(is_evidence("", std::int64_t{3}));
  Finding finding;
  finding.evidence = {{"offset", std::int64_t{3}}, {"file", std::string("a.bin")}};
  REQUIRE(find_evidence<std::int64_t>(finding, "offset") != nullptr);
  CHECK(*find_evidence<std::int64_t>(finding, "offset") == 3);
  CHECK(find_evidence<std::string>(finding, "offset") == nullptr);
  CHECK(find_evidence<std::int64_t>(finding, "rank") == nullptr);
  CHECK(has_evidence(finding, "file"));
}
