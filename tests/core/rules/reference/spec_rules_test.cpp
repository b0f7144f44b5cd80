// missing-key, unexpected-key, shape-mismatch, dtype-mismatch: a checkpoint next to a spec.
#include <doctest/doctest.h>

#include <algorithm>

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

TEST_CASE("a tensor saved under names with a wrapper's prefix is renamed, and another is missing") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "module._orig_mod.layers.0.w", {2, 3}, Dtype::kFloat32);
  add(builder, "module._orig_mod.layers.1.w", {2, 3}, Dtype::kFloat32);
  auto findings = look(builder, R"({"model.layers.0.w": {"shape": [2, 3]},
                                    "model.layers.2.w": {"shape": [2, 3]}})");
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].rule == "renamed-tensors");
  CHECK(findings[0].severity == Severity::kError);
  CHECK(findings[0].subjects == std::vector<std::string>{"module._orig_mod.layers.0.w"});
  CHECK(findings[1].rule == "missing-key");
  CHECK(findings[1].severity == Severity::kError);
  CHECK(findings[1].subjects == std::vector<std::string>{"model.layers.2.w"});
  CHECK(findings[2].rule == "unexpected-key");
  CHECK(findings[2].severity == Severity::kInfo);
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

TEST_CASE("packed numbers in another shape are not called a cast") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "a.weight", {6, 4}, Dtype::kUint8);
  add(builder, "b.weight", {6, 8}, Dtype::kUint8);
  auto findings = look(builder, R"({"a.weight": {"shape": [6, 8], "dtype": "bfloat16"},
      "b.weight": {"shape": [6, 8], "dtype": "bfloat16"}})");
  std::erase_if(findings, [](const Finding& one) { return one.rule != "dtype-mismatch"; });
  REQUIRE(findings.size() == 2);
  for (const Finding& finding : findings) {
    const bool is_packed = finding.subjects == std::vector<std::string>{"a.weight"};
    CHECK((finding.cause.find("quantised") != std::string::npos) == is_packed);
    CHECK((finding.cause.find("casts on load") != std::string::npos) == !is_packed);
  }
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

TEST_CASE("one extent that stands for another everywhere is said once") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "norm", {32}, Dtype::kFloat32);
  add(builder, "q", {8, 32}, Dtype::kFloat32);
  add(builder, "down", {32, 8}, Dtype::kFloat32);
  const std::string same =
      R"({"norm": {"shape": [16]}, "q": {"shape": [8, 16]}, "down": {"shape": )";
  auto findings = look(builder, (same + "[16, 8]}}").c_str());
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].cause.find("In all 3 of them 32 is stored where 16 is expected") !=
        std::string::npos);
  for (const char* other : {"[16, 4]}}", "[12, 8]}}", "[4, 4, 8]}}"}) {
    CAPTURE(other);
    auto mixed = look(builder, (same + other).c_str());
    REQUIRE(mixed.size() == 1);
    CHECK(mixed[0].cause.find("In all 3 of them") == std::string::npos);
  }
}

TEST_CASE("two 4-bit values to a byte are not another shape where the loader unpacks them") {
  auto found = [](const Format& format, Dtype dtype, const char* scale, std::int64_t columns) {
    CheckpointBuilder builder;
    builder.set_format(format);
    add(builder, "up.weight", {6, columns}, dtype);
    add(builder, scale, {6, 1}, Dtype::kFloat32);
    auto findings = look(builder, R"({"up.weight": {"shape": [6, 8]}})");
    std::erase_if(findings, [](const Finding& one) { return one.rule != "shape-mismatch"; });
    REQUIRE(findings.size() == 1);
    return findings[0];
  };
  Format whole = test::kUnnamedFormat;
  whole.traits.has_one_piece_per_tensor = true;
  for (Dtype dtype : {Dtype::kUint8, Dtype::kInt8, Dtype::kFloat4E2m1fnX2}) {
    const Finding packed = found(whole, dtype, "up.weight_scale", 4);
    CHECK(packed.severity == Severity::kInfo);
    CHECK(packed.cause.find("two 4-bit values to a byte") != std::string::npos);
    // In DCP the shapes are compared as they are.
    const Finding tiles = found(test::kUnnamedFormat, dtype, "up.weight_scale", 4);
    CHECK(tiles.severity == Severity::kError);
    CHECK(tiles.cause.find("packed into a byte") != std::string::npos);
  }
  CHECK(found(whole, Dtype::kUint8, "other.weight_scale", 4).severity == Severity::kError);
  CHECK(found(whole, Dtype::kUint8, "up.weight_scale", 3).severity == Severity::kError);
  CHECK(found(whole, Dtype::kBfloat16, "up.weight_scale", 4).severity == Severity::kError);
}

TEST_CASE("one rank's part of flattened parameters is recognised by its number of elements") {
  struct Case {
    std::vector<std::pair<const char*, Extents>> saved;
    const char* says;
  };
  const char* spec = R"({"embed.weight": {"shape": [64, 16]}, "norm.weight": {"shape": [16]},
                         "up.weight": {"shape": [32, 16]}})";
  const Case cases[] = {
      {{{"embed.weight", {260}}, {"up.weight", {32, 16}}},
       "4 x 260 = 64 x 16 + 16: embed.weight holds one rank's part of a flat parameter of 4 ranks "
       "that FSDP made of embed.weight and norm.weight"},
      {{{"embed.weight", {347}}, {"norm.weight", {0}}, {"up.weight", {32, 16}}},
       "3 x 347 = 64 x 16 + 16 + 1 of padding"},
      {{{"embed.weight", {256}}, {"norm.weight", {4}}, {"up.weight", {128}}},
       "Each of them is flat, with 1/4 of the elements"},
      {{{"embed.weight", {147}}, {"norm.weight", {3}}, {"up.weight", {74}}},
       "Each of them is flat, with 1/7 of the elements"},
      {{{"embed.weight", {0}}, {"norm.weight", {0}}, {"up.weight", {0}}},
       "All of them were saved without an element: DeepSpeed ZeRO-3"}};
  for (const Case& one : cases) {
    CAPTURE(one.says);
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    for (const auto& [fqn, shape] : one.saved) add(builder, fqn, shape, Dtype::kFloat32);
    const auto findings = look(builder, spec);
    const auto found = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.rule == "shape-mismatch";
    });
    REQUIRE(found != findings.end());
    CHECK_MESSAGE(found->cause.find(one.says) != std::string::npos, found->cause);
  }
}

TEST_CASE("other shapes than those of flat parts are not called such") {
  const Extents not_flat[] = {{261}, {1000}, {32, 16}, {}};
  for (const Extents& saved : not_flat) {
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    add(builder, "embed.weight", saved, Dtype::kFloat32);
    add(builder, "norm.weight", {16}, Dtype::kFloat32);
    const auto findings = look(builder, R"({"embed.weight": {"shape": [64, 16]},
                                            "norm.weight": {"shape": [16]}})");
    REQUIRE(findings.size() == 1);
    CHECK_MESSAGE(findings[0].cause.find("rank") == std::string::npos, findings[0].cause);
  }
}

TEST_CASE("an _extra_state that is not here is only to know, and apart from what is missing") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  add(builder, "layers.0.w", {4}, Dtype::kFloat32);
  auto findings = look(builder, R"({"layers.0.w": {"shape": [4]}, "layers.1.w": {"shape": [4]},
      "layers.0._extra_state": {"shape": [0]}, "layers.1._extra_state": {"shape": [0]}})");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].severity == Severity::kError);
  CHECK(findings[0].subjects == std::vector<std::string>{"layers.1.w"});
  CHECK(findings[1].severity == Severity::kInfo);
  CHECK(findings[1].subjects.size() == 2);
}
