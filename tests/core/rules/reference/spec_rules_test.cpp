// missing-key, unexpected-key, shape-mismatch, dtype-mismatch: a checkpoint beside a spec.
#include <doctest/doctest.h>

#include "core/model/builder.h"
#include "core/rules/check.h"
#include "core/unnamed_format.h"

using namespace shw;

namespace {

void add(CheckpointBuilder& builder, const std::string& fqn, const Extents& shape, Dtype dtype) {
  builder.add_tensor(fqn, dtype, shape);
  builder.add_chunk(Extents(shape.size(), 0), shape, ItemPlace{builder.file("__0_0.distcp"), 0, 1});
}

std::vector<Finding> look(CheckpointBuilder& builder, const char* json) {
  auto spec = parse_spec(json, "spec.json");
  REQUIRE(spec.has_value());
  CheckOptions options{Depth::kMetadata, std::make_shared<Spec>(std::move(*spec)), std::nullopt};
  auto report = check(*builder.finish(), options);
  REQUIRE(report.has_value());
  return report->findings;
}

}  // namespace

TEST_CASE("a tensor saved under a wrapper's name is missing, and its other name is said") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "module._orig_mod.layers.0.w", {2, 3}, Dtype::kFloat32);
  add(builder, "module._orig_mod.layers.1.w", {2, 3}, Dtype::kFloat32);
  auto findings = look(builder, R"({"model.layers.0.w": {"shape": [2, 3]},
                                    "model.layers.2.w": {"shape": [2, 3]}})");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].rule == "missing-key");
  CHECK(findings[0].severity == Severity::kError);
  CHECK(findings[0].subjects == std::vector<std::string>{"model.layers.0.w", "model.layers.2.w"});
  CHECK(findings[0].cause.find("model.layers.0.w <- module._orig_mod.layers.0.w") !=
        std::string::npos);
  CHECK(findings[1].rule == "unexpected-key");
  CHECK(findings[1].severity == Severity::kInfo);
}

TEST_CASE("a spec that covers a part gives one piece of information, whatever the number") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  for (int i = 0; i < 50; ++i) add(builder, "layers." + std::to_string(i), {4}, Dtype::kFloat32);
  auto findings = look(builder, R"({"layers.0": {"shape": [4]}})");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "unexpected-key");
  CHECK(findings[0].subjects.size() == 49);
}

TEST_CASE("an object where a tensor is expected is named as such") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_object({"step", ItemPlace{builder.file("__0_0.distcp"), 0, 1}});
  auto findings = look(builder, R"({"step": {"shape": []}})");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "missing-key");
  CHECK(findings[0].cause.find("pickled object") != std::string::npos);
}

TEST_CASE("another dtype is a warning, one for each cast") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "a", {4}, Dtype::kFloat32);
  add(builder, "b", {4}, Dtype::kFloat32);
  add(builder, "c", {4}, Dtype::kFloat16);
  auto findings = look(builder, R"({"a": {"shape": [4], "dtype": "bfloat16"},
      "b": {"shape": [4], "dtype": "torch.bfloat16"}, "c": {"shape": [4], "dtype": "float32"}})");
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings) {
    CHECK(finding.rule == "dtype-mismatch");
    CHECK(finding.severity == Severity::kWarning);
  }
  CHECK(findings[0].subjects.size() + findings[1].subjects.size() == 3);
}

TEST_CASE("another shape is an error that says how the two are related") {
  struct Case {
    Extents saved;
    const char* expected;
    const char* says;
  };
  const Case cases[] = {{{8, 4}, "[4, 4]", "dim 0 is 2 times as long"},
                        {{2, 4}, "[6, 4]", "dim 0 is 1/3 as long"},
                        {{5, 4}, "[4, 4]", "dim 0 is 5 instead of 4"},
                        {{4}, "[4, 4]", "1 dimension instead of 2"},
                        {{0, 4}, "[4, 4]", "dim 0 is 0 instead of 4"}};
  for (const Case& one : cases) {
    CAPTURE(one.says);
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    add(builder, "w", one.saved, Dtype::kFloat32);
    std::string json = std::string(R"({"w": {"shape": )") + one.expected + "}}";
    auto findings = look(builder, json.c_str());
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == "shape-mismatch");
    CHECK(findings[0].cause.find(one.says) != std::string::npos);
  }
}
