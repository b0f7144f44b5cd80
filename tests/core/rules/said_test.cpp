// User options that the checkpoint contradicts: one finding reports that.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/formats/open.h"
#include "core/model/builder.h"
#include "core/report/text.h"
#include "core/rules/check.h"
#include "core/rules/on_fixtures.h"
#include "core/unnamed_format.h"

using namespace shw;
using namespace shw::test;

namespace {

CheckOptions with_mesh(const char* text) {
  CheckOptions options{Depth::kMetadata, nullptr, std::nullopt};
  options.mesh = *parse_mesh(text);
  return options;
}

// Four ranks, a matrix cut 2 x 2: tp cuts columns inside dp.
std::shared_ptr<const Checkpoint> on_two_by_two() {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{8, 6});
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    builder.add_chunk(Extents{rank / 2 * 4, rank % 2 * 3}, Extents{4, 3},
                      {builder.file("__" + std::to_string(rank) + "_0.distcp"), 0, 48});
  return builder.finish();
}

CheckReport with_mesh(const Checkpoint& checkpoint, const char* text) {
  return looked(checkpoint, with_mesh(text));
}

}  // namespace

TEST_CASE("a mesh of another size is answered with both numbers") {
  auto checkpoint = on_two_by_two();
  CheckReport small = with_mesh(*checkpoint, "dp=2");
  CHECK(small.verdict == Verdict::kFindings);
  const Finding* finding = find(small, "mesh-contradicted");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("4 ranks wrote this, and the mesh (dp 2) has 2") == 0);
  CHECK(finding->consequence == Consequence::kNone);
  std::string text = check_to_text(*checkpoint, small, {});
  CHECK(text.find("mesh-contradicted: the request is wrong") != std::string::npos);
  CheckReport large = with_mesh(*checkpoint, "dp=16");
  CHECK(large.verdict == Verdict::kFindings);
  REQUIRE(find(large, "mesh-contradicted") != nullptr);
  CHECK(find(large, "mesh-contradicted")->cause.find("has 16") != std::string::npos);
}

// With dedup_save_to_lowest_rank the lowest rank of every group of equal tiles writes.
TEST_CASE("a mesh is not contradicted where the lowest ranks of its replicas wrote") {
  auto written_by = [](const std::vector<std::uint32_t>& ranks) {
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    builder.add_tensor("w", Dtype::kFloat32, Extents{8, 6});
    for (std::uint32_t i = 0; i < ranks.size(); ++i)
      builder.add_chunk(Extents{i * (8 / std::int64_t(ranks.size())), 0},
                        Extents{8 / std::int64_t(ranks.size()), 6},
                        {builder.file("__" + std::to_string(ranks[i]) + "_0.distcp"), 0, 48});
    return builder.finish();
  };
  auto finds = [](const Checkpoint& checkpoint, const char* mesh) {
    return find(with_mesh(checkpoint, mesh), "mesh-contradicted") != nullptr;
  };
  CHECK_FALSE(finds(*written_by({0, 1}), "replicate=4,shard=2"));
  CHECK_FALSE(finds(*written_by({0, 4}), "shard=2,replicate=4"));
  CHECK_FALSE(finds(*written_by({0, 1, 4, 5}), "a=2,replicate=2,b=2"));
  CHECK(finds(*written_by({0, 1}), "shard=8"));
  CHECK(finds(*written_by({0, 2}), "replicate=4,shard=2"));
}

TEST_CASE("a mesh of the right size that predicts other tiles is answered") {
  auto checkpoint = on_two_by_two();
  const Finding* finding = nullptr;
  CheckReport report = with_mesh(*checkpoint, "dp=4");
  finding = find(report, "mesh-contradicted");
  REQUIRE(finding != nullptr);
  CHECK(finding->severity == Severity::kWarning);
  CHECK(finding->cause.find("0 of 1 tensor") != std::string::npos);
  CHECK(find(with_mesh(*checkpoint, "dp=2,tp=2"), "mesh-contradicted") == nullptr);
}

TEST_CASE("the meshes that really saved the fixtures are not contradicted") {
  struct Row {
    const char* fixture;
    const char* mesh;
  };
  for (const Row& row : {Row{"torch-2.14/healthy_moe_ep", "ep_shard=2,ep=2"},
                         Row{"torch-2.14/healthy_fsdp_tp_strided", "dp=4,tp=2"},
                         Row{"torch-2.14/s5_tp_axis_dropped", "dp=2,tp=2"},
                         Row{"torch-2.14/s5_strided_recorded_as_plain", "dp=4,tp=2"}}) {
    CAPTURE(row.fixture);
    CheckReport report = with_mesh(*opened_fixture(row.fixture), row.mesh);
    const Finding* finding = find(report, "mesh-contradicted");
    CHECK_MESSAGE((finding == nullptr || finding->severity == Severity::kInfo),
                  (finding ? finding->cause : ""));
  }
}

TEST_CASE("a spec of another model is one finding and nothing is compared with it") {
  auto checkpoint = opened_fixture("torch-2.14/healthy_moe_ep");
  for (const char* other : {"torch-2.14/healthy_grid", "torch-2.14/healthy_fsdp",
                            "torch-2.14/s5_tp_axis_dropped", "torch-2.6/healthy_dtypes"}) {
    CAPTURE(other);
    auto spec = load_spec(folder(other) + "/spec.json");
    REQUIRE(spec.has_value());
    CheckOptions options{Depth::kHeaders, std::make_shared<const Spec>(*spec), std::nullopt};
    CheckReport report = looked(*checkpoint, options);
    CHECK(report.verdict == Verdict::kFindings);
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].rule == "other-model");
    CHECK(report.findings[0].cause.find("0 of ") != std::string::npos);
    CHECK(report.spec == nullptr);
    options.spec = nullptr;
    options.reference = opened_fixture(other);
    report = looked(*checkpoint, options);
    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].rule == "other-model");
  }
}

TEST_CASE("a spec of the same model in another size is one finding and nothing is planned") {
  for (const char* one : {"torch-2.14/healthy_moe_ep", "torch-2.14/s5_tp_axis_dropped"}) {
    CAPTURE(one);
    auto checkpoint = opened_fixture(one);
    auto spec = load_spec(folder(one) + "/spec.json");
    REQUIRE(spec.has_value());
    for (auto& [fqn, entry] : spec->entries) {
      for (std::int64_t& extent : entry.shape) extent *= 2;
    }
    CheckReport report =
        looked(*checkpoint, {Depth::kHeaders, std::make_shared<const Spec>(*spec), std::nullopt});
    REQUIRE(find(report, "other-model") != nullptr);
    CHECK(find(report, "other-model")->cause.find("in a different size") != std::string::npos);
    CHECK(find(report, "axis-dropped") == nullptr);
    CHECK(report.spec == nullptr);
  }
}

TEST_CASE("matrices that may each be the shard of one rank are not called another model alone") {
  for (bool in_one_piece : {true, false}) {
    CheckpointBuilder builder;
    builder.set_format(test::kUnnamedFormat);
    Spec spec;
    spec.source = "whole.json";
    FileId file = builder.file("__0_0.distcp");
    for (int i = 0; i < 4; ++i) {
      const std::string name = "layers." + std::to_string(i) + ".w";
      spec.entries[name] = {Extents{8, 6}, {}, {}, {}, "", ""};
      builder.add_tensor(name, Dtype::kFloat32, Extents{4, 3});
      const std::int64_t rows = in_one_piece ? 4 : 2;
      for (std::int64_t row = 0; row < 4; row += rows)
        builder.add_chunk(Extents{row, 0}, Extents{rows, 3}, {file, 100 * i + row, 1});
    }
    CheckReport report =
        looked(*builder.finish(),
               CheckOptions{Depth::kMetadata, std::make_shared<const Spec>(spec), std::nullopt});
    REQUIRE(find(report, "other-model") != nullptr);
    const std::string& cause = find(report, "other-model")->cause;
    CHECK(cause.find("layers.0.w is [4, 3], expected [8, 6]") != std::string::npos);
    CHECK((cause.find("the shard of one rank") != std::string::npos) == in_one_piece);
  }
}

TEST_CASE("a few names that every model has make no same model") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  Spec spec;
  spec.source = "other.json";
  for (int i = 0; i < 40; ++i)
    spec.entries["model.layers." + std::to_string(i) + ".w"] = {Extents{4, 4}, {}, {}, {}, "", ""};
  spec.entries["model.norm.weight"] = {Extents{8}, {}, {}, {}, "", ""};
  for (const char* name : {"model.norm.weight", "lm_head.weight", "model.embed.weight"}) {
    builder.add_tensor(name, Dtype::kFloat32, Extents{6});
    builder.add_chunk(Extents{0}, Extents{6}, {builder.file("__0_0.distcp"), 0, 1});
  }
  CheckReport report =
      looked(*builder.finish(),
             CheckOptions{Depth::kMetadata, std::make_shared<const Spec>(spec), std::nullopt});
  REQUIRE(find(report, "other-model") != nullptr);
  CHECK(find(report, "missing-key") == nullptr);
  CHECK(find(report, "other-model")->subjects == std::vector<std::string>{"other.json"});
  CHECK(find(report, "other-model")->cause.find("1 of 41 names agrees") != std::string::npos);
}

TEST_CASE("prefixes of wrappers and truncated saves and parts make no other model") {
  auto checkpoint = opened_fixture("torch-2.14/healthy_moe_ep");
  auto spec = load_spec(folder("torch-2.14/healthy_moe_ep/spec.json"));
  REQUIRE(spec.has_value());
  Spec wrapped, larger, part;
  larger = *spec;
  for (const auto& [fqn, entry] : spec->entries) wrapped.entries["module." + fqn] = entry;
  for (int i = 0; i < 500; ++i)
    larger.entries["model.layers." + std::to_string(i) + ".w"] = {Extents{4}, {}, {}, {}, "", ""};
  part.entries.insert(*spec->entries.begin());
  for (const Spec& one : {wrapped, larger, part}) {
    CheckReport report =
        looked(*checkpoint, {Depth::kMetadata, std::make_shared<const Spec>(one), std::nullopt});
    CHECK(find(report, "other-model") == nullptr);
  }
}

TEST_CASE("what a reference does not have is not said to be missing from a spec") {
  CheckpointBuilder here, there;
  for (const char* name : {"a.weight", "b.weight", "c.weight", "d.weight"}) {
    for (CheckpointBuilder* builder : {&here, &there}) {
      builder->set_format(test::kUnnamedFormat);
      if (builder == &there && std::string_view(name) == "d.weight") continue;
      builder->add_tensor(name, Dtype::kFloat32, Extents{6});
      builder->add_chunk(Extents{0}, Extents{6}, {builder->file("__0_0.distcp"), 0, 1});
    }
  }
  CheckOptions options{Depth::kMetadata, nullptr, std::nullopt};
  options.reference = there.finish();
  auto checkpoint = here.finish();
  CheckReport report = looked(*checkpoint, options);
  const Finding* finding = find(report, "unexpected-key");
  REQUIRE(finding != nullptr);
  CHECK(finding->cause.find("the reference") != std::string::npos);
  CHECK(check_to_text(*checkpoint, report, {}).find("spec (") == std::string::npos);
}

TEST_CASE("what is only to know is not said to break a load") {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  builder.add_tensor("w", Dtype::kFloat32, Extents{6});
  builder.add_chunk(Extents{0}, Extents{6}, {builder.file("__0_0.distcp"), 0, 1});
  auto checkpoint = builder.finish();
  CheckReport report = looked(*checkpoint, {Depth::kMetadata, nullptr, std::nullopt});
  Finding symptom;
  symptom.rule = "payload-shape";
  symptom.severity = Severity::kInfo;
  symptom.subjects = {"w"};
  symptom.cause = "x";
  report.findings = {symptom};
  CHECK(check_to_text(*checkpoint, report, {}).find("loads wrong") == std::string::npos);
  report.findings[0].evidence = {{"explained_by", std::string("axis-dropped")}};
  CHECK(check_to_text(*checkpoint, report, {}).find("1 tensor: by axis-dropped") !=
        std::string::npos);
}
