// Map files: parsing, refusals, and patterns with counters.
#include "core/maps/model_map.h"

#include <doctest/doctest.h>

#include <string>

#include "core/maps/built_in_maps.h"
#include "core/maps/size_expression.h"
#include "core/maps/write_map.h"

using namespace shw;

namespace {

std::optional<std::int64_t> nothing(std::string_view) {
  return std::nullopt;
}

std::string map_with(const std::string& rows) {
  return R"({"schema": "shardwright-map/1", "name": "m", "from": "a", "to": "b", "rows": [)" +
         rows + "]}";
}

std::string refusal_of(const std::string& json) {
  auto map = model_map_from_json(json, "m.json");
  return map ? "" : map.error().message;
}

std::optional<std::int64_t> size_of_text(std::string_view text) {
  const SizeNames names{
      [](std::string_view name) {
        return name == "heads" ? std::optional<std::int64_t>(32) : std::nullopt;
      },
      [](std::string_view, std::string_view) { return std::optional<std::int64_t>(7); }};
  return size_of_expression(text, names);
}

}  // namespace

TEST_CASE("maps: all that come with the program can be read") {
  CHECK(built_in_maps().size() == 3);
  for (const char* name : {"hf-megatron", "hf-titan", "hf-fsdp_dtensor"})
    CHECK_MESSAGE(map_named(name).has_value(), name);
}

TEST_CASE("maps: a file that is not a map is refused with the row and the key") {
  CHECK(refusal_of("[").find("JSON") != std::string::npos);
  CHECK(refusal_of("[]") != "");
  CHECK(refusal_of(R"({"schema": "x"})") != "");
  CHECK(refusal_of(map_with(R"({"from": "a"})")).find("row 1") != std::string::npos);
  CHECK(refusal_of(map_with(R"({"from": "a", "to": "b", "more": 1})")).find("more") !=
        std::string::npos);
  CHECK(refusal_of(map_with(R"({"from": "a{l", "to": "b"})")).find("closed") != std::string::npos);
  CHECK(
      refusal_of(map_with(R"({"from": "a", "to": "b", "do": [{"op": "grind"}]})")).find("grind") !=
      std::string::npos);
  // Two tensors cannot be one without a join.
  CHECK(refusal_of(map_with(R"({"from": ["a", "b"], "to": "c"})")) != "");
  CHECK(refusal_of(map_with(R"({"from": ["a", "b"], "to": "c", "do": [{"op": "join"}]})")) == "");
}

TEST_CASE("maps: an addition is read and written, and a number that float32 rounds is refused") {
  const auto with_value = [](const std::string& value) {
    return map_with(R"({"from": "a", "to": "b", "do": [{"op": "add", "value": )" + value + "}]}");
  };
  auto map = model_map_from_json(with_value("-1"), "m.json");
  REQUIRE(map.has_value());
  CHECK(map_to_json(*map).find(R"({"op":"add","value":-1.0})") != std::string::npos);
  CHECK(model_map_from_json(map_to_json(*map), "m.json").has_value());
  for (const char* value : {"0", "0.1", "1e300"}) CHECK(refusal_of(with_value(value)) != "");
  CHECK(refusal_of(map_with(R"({"from": "a", "to": "b", "do": [{"op": "add"}]})")) != "");
  CHECK(refusal_of(map_with(
            R"({"from": ["a", "c"], "to": ["b", "d"], "do": [{"op": "add", "value": 1}]})")) != "");
}

TEST_CASE("maps: where optimizer states are written is refused where it is not a name of a state") {
  const auto refusal = [](const std::string& states) {
    return refusal_of(R"({"schema": "shardwright-map/1", "name": "m", "from": "a", "to": "b",)"
                      R"( "states": )" +
                      states + R"(, "rows": [{"from": "a", "to": "b"}]})");
  };
  CHECK(refusal(R"({"to": {"name": "optim.{name}.{state}", "masters": "param"}})") == "");
  CHECK(refusal(R"({"to": {"name": "optim.{name}"}})").find("{state}") != std::string::npos);
  CHECK(refusal(R"({"to": {"name": "{state}.{state}.{name}"}})").find("{state}") !=
        std::string::npos);
  CHECK(refusal(R"({"to": {"name": "{state}.{name}", "masters": "x"}})").find("masters") !=
        std::string::npos);
  CHECK(refusal(R"({"to": {"name": "{state}.{name}", "needs_masters": true}})").find("masters") !=
        std::string::npos);
  CHECK(refusal(R"({"beside": {}})").find("beside") != std::string::npos);
  CHECK(refusal(R"({"to": {"name": "{state}.{name})" + std::string(2000, 'x') + R"("}})") != "");
}

TEST_CASE("maps: text in brackets makes a row with a counter and one that is stacked") {
  auto map = model_map_from_json(map_with(R"({"from": "a.{l}.w", "to": "b.[{l}.]w"})"), "m.json");
  REQUIRE(map);
  REQUIRE(map->rows.size() == 2);
  CHECK(map->rows[0].to.front().has("l"));
  CHECK_FALSE(map->rows[1].to.front().has("l"));
}

TEST_CASE("counter patterns: a counter is a whole number without zeros before it") {
  auto pattern = parse_counter_pattern("model.layers.{l}.experts.{e}.w1");
  REQUIRE(pattern);
  NumberedNames names;
  names.add("model.layers.3.experts.11.w1", 0);
  names.add("model.layers.3.experts.11.w2", 1);
  names.add("model.layers.03.experts.11.w1", 2);
  names.add("model.layers.99999999999999999999.experts.1.w1", 3);
  const auto found = names.matches(*pattern, nothing);
  REQUIRE(found.size() == 1);
  CHECK(found.front().index == 0);
  CHECK(found.front().counters.at("l") == 3);
  CHECK(found.front().counters.at("e") == 11);
  CHECK(name_of(*pattern, found.front().counters, nothing) == "model.layers.3.experts.11.w1");
}

TEST_CASE("counter patterns: a value is taken off the number") {
  auto pattern = parse_counter_pattern("model.layers.{m+layers}.w");
  REQUIRE(pattern);
  NumberedNames names;
  names.add("model.layers.1.w", 0);
  names.add("model.layers.5.w", 1);
  const auto found =
      names.matches(*pattern, [](std::string_view) { return std::optional<std::int64_t>(4); });
  REQUIRE(found.size() == 1);
  CHECK(found.front().counters.at("m") == 1);
}

TEST_CASE("size expressions: sums and products, and nothing where a rest or an overflow is left") {
  CHECK(size_of_text("heads*4") == 128);
  CHECK(size_of_text("(heads + 2*8)*2") == 96);
  CHECK(size_of_text("heads/8") == 4);
  CHECK_FALSE(size_of_text("heads/5"));
  CHECK_FALSE(size_of_text("1-heads"));
  CHECK_FALSE(size_of_text("9223372036854775807*2"));
  CHECK_FALSE(size_of_text("groups"));
  CHECK(size_of_text("dim(a.weight, 0)") == 7);
  CHECK_FALSE(is_size_expression("heads*"));
  CHECK_FALSE(is_size_expression("(((((((((((((((((((1)))))))))))))))))))"));
  CHECK(is_size_expression("groups*head_dim"));
}

TEST_CASE("counter patterns: a name with the mark of a number fits no pattern") {
  CHECK_FALSE(parse_counter_pattern("layers.#.w"));
  auto pattern = parse_counter_pattern("layers.{l}.w");
  REQUIRE(pattern);
  NumberedNames names;
  names.add("layers.#.w", 0);
  CHECK(names.matches(*pattern, nothing).empty());
  CHECK(names.find("layers.#.w") == 0);
}

TEST_CASE("model map: what is written is read as the same map") {
  for (const ModelMap& map : built_in_maps()) {
    CAPTURE(map.name);
    const std::string text = map_to_json(map);
    auto read = model_map_from_json(text, "map.json");
    REQUIRE(read);
    CHECK(map_to_json(*read) == text);
    CHECK(text.find("\"states\"") != std::string::npos);
    CHECK(read->rows.size() == map.rows.size());
  }
}
