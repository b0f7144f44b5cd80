#include "core/learn/made_weights.h"

#include "core/learn/prove_map.h"
#include "core/maps/write_map.h"

namespace shw::test {
namespace {

void check_made(const ModelMap& map, MapDirection way, const std::vector<TiledTensor>& source,
                const std::vector<TiledTensor>& made) {
  const auto there = laid(made, "made");
  auto proof = prove_map(map, way, laid(source, "source"), *there, nullptr);
  REQUIRE(proof.has_value());
  CHECK(proof->unexpected_results.empty());
  for (std::size_t i = 0; i < proof->tensors.size(); ++i) {
    CAPTURE(made[i].fqn);
    CHECK(proof->tensors[i] == ProvedTensor::kEqual);
  }
}

}  // namespace

void check_explained(const std::vector<TiledTensor>& a, const std::vector<TiledTensor>& b) {
  for (const bool is_back : {false, true}) {
    CAPTURE(is_back);
    const auto &source = is_back ? b : a, &made = is_back ? a : b;
    const LearnedMap learned = learned_between(source, made);
    CHECK(learned.is_all_explained());
    CHECK(learned.proved == made.size());
    CHECK(learned.unused.empty());
    // The written map equals the proved one.
    auto read = model_map_from_json(map_to_json(learned.map), "map.json");
    if (!read) FAIL(read.error().message);
    check_made(*read, learned.way, source, made);
    check_made(*read,
               learned.way == MapDirection::kForward ? MapDirection::kBack : MapDirection::kForward,
               made, source);
  }
}

std::vector<std::string> row_texts(const ModelMap& map) {
  std::vector<std::string> out;
  for (const MapRow& row : map.rows) {
    std::string text;
    for (const CounterPattern& pattern : row.from)
      text += (text.empty() ? "" : ", ") + pattern.text;
    text += " ->";
    for (const CounterPattern& pattern : row.to) text += " " + pattern.text;
    for (std::size_t i = 0; i < row.ops.size(); ++i)
      text += (i == 0 ? ": " : " ") + std::string(name(row.ops[i].kind));
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace shw::test
