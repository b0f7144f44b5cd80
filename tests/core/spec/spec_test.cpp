#include "core/spec/spec.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("a spec is read with its axes in the order of the text, and what is unknown is kept") {
  auto spec = parse_spec(R"J({"w": {"shape": [2, 3, 4], "dtype": "float32",
      "mesh": {"z": 2, "a": 4}, "placements": ["Shard(2)", "StridedShard(0,sf=2)"],
      "role": "expert", "tied": {"to": "v"}},
      "v": {"shape": [], "dtype": null, "mesh": null, "placements": null, "role": null}})J",
                         "spec.json");
  REQUIRE(spec.has_value());
  const SpecEntry* w = spec->find("w");
  REQUIRE(w != nullptr);
  CHECK(w->shape == Extents{2, 3, 4});
  CHECK(w->dtype == Dtype::kFloat32);
  REQUIRE(w->mesh);
  CHECK(w->mesh->axes == std::vector<MeshAxis>{{"z", 2}, {"a", 4}});
  REQUIRE(w->placements.size() == 2);
  CHECK(w->placements[0].dim == 2);
  CHECK(w->placements[1].split_factor == 2);
  CHECK(w->role == "expert");
  CHECK(w->extra == R"({"tied":{"to":"v"}})");
  CHECK(spec->find("v")->shape.empty());
  CHECK(spec->find("u") == nullptr);
}

TEST_CASE("a spec is read as people write it, remarks next to the entries too") {
  auto spec = parse_spec(R"J({"$schema": "spec.schema.json", "_comment": ["by hand"],
      "w": {"shape": [4, 4], "dtype": "bf16", "mesh": {"dp": 2, "tp": 2},
            "placements": ["replicate", "shard(0)"]},
      "v": {"shape": [4], "dtype": "FP32", "mesh": {"dp": 2}, "placements": ["ss(0,2)"]},
      "_orig_mod.u": {"shape": [1], "dtype": "F8_E4M3"}})J",
                         "spec.json");
  REQUIRE(spec.has_value());
  CHECK(spec->entries.size() == 3);
  CHECK(spec->find("w")->dtype == Dtype::kBfloat16);
  CHECK(spec->find("w")->placements == std::vector<Placement>{{}, *parse_placement("Shard(0)")});
  CHECK(spec->find("v")->dtype == Dtype::kFloat32);
  CHECK(spec->find("v")->placements.front() == *parse_placement("StridedShard(0, 2)"));
  CHECK(spec->find("_orig_mod.u")->dtype == Dtype::kFloat8E4m3fn);
}

TEST_CASE("what is not a spec is refused with the tensor and the byte") {
  struct Case {
    const char* text;
    const char* says;
    std::uint64_t byte;
  };
  const Case cases[] = {
      {"", "not JSON", 0},
      {"{\"w\": {\"shape\": [1,]}}", "not JSON", 19},
      {"[1]", "one JSON object", 0},
      {"{\"w\": 3}", "at least a \"shape\"", 1},
      {"{\"_orig_mod.w\": 3}", "at least a \"shape\"", 1},
      {"{\"$w\": {}}", "at least a \"shape\"", 1},
      {"{\"w\": {\"dtype\": \"int8\"}}", "at least a \"shape\"", 1},
      {"{\"w\": {\"shape\": [1.5]}}", "1.5", 1},
      {"{\"w\": {\"shape\": [-1]}}", "-1", 1},
      {"{\"w\": {\"shape\": [18446744073709551615]}}", "18446744073709551615", 1},
      {"{\"w\": {\"shape\": [1], \"dtype\": \"float3\"}}", "float3", 1},
      {"{\"w\": {\"shape\": [1], \"mesh\": {\"dp\": 0}}}", "axis dp", 1},
      {"{\"w\": {\"shape\": [1], \"mesh\": {\"a\": 4611686018427387904, \"b\": 4}}}", "axis b", 1},
      {"{\"w\": {\"shape\": [1], \"mesh\": {\"a\": 2, \"a\": 2}}}", "twice", 1},
      {"{\"w\": {\"shape\": [1], \"placements\": [\"Shrad(0)\"]}}", "Shrad", 1},
      {"{\"w\": {\"shape\": [1], \"placements\": [\"Shard(1)\"]}}", "Shard(1)", 1},
      {"{\"w\": {\"shape\": [1], \"mesh\": {\"a\": 2}, \"placements\": [\"R\", \"R\"]}}",
       "2 placements", 1},
      {"{\"w\": {\"shape\": [1]}, \"w\": {\"shape\": [1]}}", "twice", 1},
      {"{\"w\": {\"shape\": [1], \"shape\": [2]}}", "\"shape\" occurs twice", 1},
      {"{\"v\": {\"shape\": [1]}, \"w\": {\"dtype\": \"int8\", \"shape\": [1], \"dtype\": "
       "\"int8\"}}",
       "\"dtype\" occurs twice", 22},
  };
  for (const Case& one : cases) {
    CAPTURE(one.text);
    auto spec = parse_spec(one.text, "spec.json");
    REQUIRE_FALSE(spec.has_value());
    CAPTURE(spec.error().message);
    CHECK(spec.error().message.find(one.says) != std::string::npos);
    CHECK(spec.error().place.file == "spec.json");
    CHECK(spec.error().place.offset == one.byte);
  }
}

TEST_CASE("nesting without end is refused, not followed") {
  std::string text = "{\"w\": ";
  for (int i = 0; i < 100'000; ++i) text += "[";
  CHECK_FALSE(parse_spec(text, "spec.json").has_value());
  for (int i = 0; i < 100'000; ++i) text += "]";
  text += "}";
  auto spec = parse_spec(text, "spec.json");
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().message.find("nested") != std::string::npos);
}

TEST_CASE("a spec that is not there is an I/O error") {
  auto spec = load_spec("/no/such/spec.json");
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().kind == ErrorKind::kIo);
}

TEST_CASE("the spec of a fixture is read") {
  auto spec = load_spec(SHW_TEST_DATA "/torch-2.14/s1_placement_not_transposed/spec.json");
  REQUIRE(spec.has_value());
  CHECK(spec->entries.size() == 6);
}
