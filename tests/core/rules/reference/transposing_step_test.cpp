#include "core/rules/reference/transposing_step.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/formats/dcp/dcp_formats.h"
#include "core/model/builder.h"
#include "core/report/text.h"

using namespace shw;

namespace {

using Shapes = std::vector<std::pair<std::string, Extents>>;

std::shared_ptr<const Checkpoint> made_of(const Shapes& tensors) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  for (const auto& [name, shape] : tensors) {
    builder.add_tensor(name, Dtype::kFloat32, shape);
    builder.add_chunk(Extents(shape.size(), 0), shape, ItemPlace{builder.file("a"), 0, 1});
  }
  return builder.finish();
}

std::optional<std::string> step_for(const Checkpoint& checkpoint,
                                    const std::vector<std::string>& names) {
  std::vector<TensorId> tensors;
  for (const std::string& name : names) tensors.push_back(*checkpoint.find(name));
  return transposing_step(checkpoint, tensors);
}

}  // namespace

TEST_CASE("transposing step: a pattern stands for all layers, names for some of them") {
  auto c = made_of({{"layers.0.up.weight", {2, 3}},
                    {"layers.1.up.weight", {2, 3}},
                    {"layers.0.down.weight", {3, 2}}});
  CHECK(step_for(*c, {"layers.0.up.weight", "layers.1.up.weight"}) ==
        R"({"step":"permute-dims","tensors":["layers.*.up.weight"],"order":[1,0]})");
  CHECK(step_for(*c, {"layers.1.up.weight"}) ==
        R"({"step":"permute-dims","tensors":["layers.1.up.weight"],"order":[1,0]})");
}

TEST_CASE("transposing step: stacked matrices keep their first axis") {
  auto c = made_of({{"experts.down_proj", {4, 2, 3}}});
  CHECK(step_for(*c, {"experts.down_proj"}) ==
        R"({"step":"permute-dims","tensors":["experts.down_proj"],"order":[0,2,1]})");
}

TEST_CASE("transposing step: none for tensors of several forms, or too many to type") {
  Shapes tensors = {{"a", {4, 2, 3}}, {"b", {2, 3}}, {"c", {3}}};
  std::vector<std::string> many;
  for (char name = 'd'; name < 'j'; ++name) {
    many.emplace_back(1, name);
    tensors.push_back({many.back(), {2, 3}});
  }
  auto c = made_of(tensors);
  CHECK(step_for(*c, {"a"}).has_value());
  CHECK_FALSE(step_for(*c, {"a", "b"}).has_value());
  CHECK_FALSE(step_for(*c, {"c"}).has_value());
  CHECK_FALSE(step_for(*c, {}).has_value());
  CHECK_FALSE(step_for(*c, many).has_value());
}

TEST_CASE("transposing step: the text names the whole command") {
  auto c = made_of({{"a", {2, 3}}});
  CheckReport report;
  report.verdict = Verdict::kFindings;
  Finding finding;
  finding.rule = "sibling-axes";
  finding.severity = Severity::kWarning;
  finding.evidence = {{"suggested_step", *step_for(*c, {"a"})}};
  report.findings.push_back(finding);
  TextOptions options;
  options.checkpoint = "step_9";
  const std::string text = check_to_text(*c, report, options);
  CHECK(text.find("shardwright repair step_9 --then "
                  R"('{"step":"permute-dims","tensors":["a"],"order":[1,0]}')") !=
        std::string::npos);
}
