#include "core/rules/unjudged.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/model/builder.h"
#include "core/report/report.h"
#include "core/report/text.h"
#include "core/rules/on_fixtures.h"
#include "core/spec/spec.h"
#include "core/unnamed_format.h"

using namespace shw;
using namespace shw::test;

namespace {

bool is_open(const CheckReport& report, std::string_view what, std::string_view needs) {
  for (const Unjudged& one : report.unjudged) {
    if (one.what.find(what) != std::string::npos && one.needs.find(needs) != std::string::npos)
      return true;
  }
  return false;
}

CheckOptions at(Depth depth) {
  return CheckOptions{depth, nullptr, std::nullopt};
}

}  // namespace

TEST_CASE("without a spec shapes and row order and values and placements were not checked") {
  for (const char* fixture :
       {"torch-2.14/s5_tp_axis_dropped", "torch-2.14/s5_strided_recorded_as_plain",
        "torch-2.14/s5_fused_glu_per_tp", "torch-2.6/s5_tp_axis_dropped",
        "real-code/s5_te_tp_axis_absent_2x2", "torch-2.14/healthy_moe_ep"}) {
    CAPTURE(fixture);
    auto checkpoint = opened_fixture(fixture);
    CheckReport report = looked(*checkpoint, at(Depth::kHeaders));
    CHECK(report.verdict == Verdict::kClean);
    CHECK(is_open(report, "shapes and row order", "--spec or --against"));
    CHECK(is_open(report, "dtypes", "--spec or --against"));
    CHECK(is_open(report, "never saved", "--spec or --against"));
    CHECK(is_open(report, "placements", "--mesh"));
    CHECK(is_open(report, "values", "--data"));
    CHECK_FALSE(is_open(report, "in each item's header", ""));
    std::string text = check_to_text(*checkpoint, report, {});
    CHECK(text.find("nothing is wrong") == std::string::npos);
    CHECK(text.find("not checked:") != std::string::npos);
  }
}

TEST_CASE("placements that cannot be read are not checked, and that is said") {
  auto checkpoint = opened_fixture("torch-2.14/s4_expert_order_topology_locked");
  auto spec = load_spec(folder("torch-2.14/s4_expert_order_topology_locked/spec.json"));
  REQUIRE(spec.has_value());
  std::size_t changed = 0;
  for (auto& [fqn, entry] : spec->entries) {
    for (Placement& placement : entry.placements) {
      if (placement.kind != Placement::Kind::kStridedShard) continue;
      placement.split_factor = 3;  // later axes cut two pieces
      ++changed;
    }
  }
  REQUIRE(changed == 3);
  CheckOptions options = at(Depth::kHeaders);
  options.spec = std::make_shared<const Spec>(std::move(*spec));
  CheckReport report = looked(*checkpoint, options);
  CHECK(is_open(report, "placements of 4 tensors", "--spec"));
}

TEST_CASE("nothing is checked by two orders of a mesh that no tensor decides between") {
  auto checkpoint = opened_fixture("torch-2.14/s4_expert_order_topology_locked");
  auto spec = load_spec(folder("torch-2.14/s4_expert_order_topology_locked/spec.json"));
  REQUIRE(spec.has_value());
  CheckOptions options = at(Depth::kHeaders);
  options.spec = std::make_shared<const Spec>(std::move(*spec));
  CHECK(is_open(looked(*checkpoint, options), "placements of 1 tensor", ""));
  options.mesh = parse_mesh("ep=2,edp=4").value();
  CheckReport report = looked(*checkpoint, options);
  auto told = std::find_if(report.findings.begin(), report.findings.end(),
                           [](const auto& one) { return one.rule == "mesh-contradicted"; });
  REQUIRE(told != report.findings.end());
  CHECK(told->severity == Severity::kInfo);
  CHECK(told->cause.find("neither was used") != std::string::npos);
  // Only the experts: tensors on the other mesh were checked with it.
  CHECK(is_open(report, "placements of 4 tensors", "--mesh, with its axes in the rank order"));
}

TEST_CASE(
    "tiles that other ranks wrote than the spec has there are not checked, and that is said") {
  const Extents shape{4, 2}, half{2, 2};
  for (bool exchanged : {false, true}) {
    CheckpointBuilder builder;
    builder.set_format(kUnnamedFormat);
    auto spec = std::make_shared<Spec>();
    for (const char* fqn : {"model.a.weight", "model.b.weight"}) {
      builder.add_tensor(fqn, Dtype::kFloat32, shape);
      const bool swaps = exchanged && std::string_view(fqn) == "model.b.weight";
      for (std::int64_t row : {0, 2}) {
        const std::int64_t writer = swaps ? 1 - row / 2 : row / 2;
        FileId file = builder.file("__" + std::to_string(writer) + "_0.distcp");
        builder.add_chunk(Extents{row, 0}, half, {file, 64 * row, 64});
      }
      SpecEntry& entry = spec->entries[fqn];
      entry.shape = shape;
      entry.mesh = parse_mesh("dp=2").value();
      entry.placements = {parse_placement("Shard(0)").value()};
    }
    auto checkpoint = builder.finish();
    CheckOptions options = at(Depth::kMetadata);
    options.spec = spec;
    CheckReport report = looked(*checkpoint, options);
    CHECK(is_open(report, "positions of the chunks of 1 tensor", "--against") == exchanged);
    CHECK_FALSE(is_open(report, "positions of the chunks of 2 tensors", ""));
  }
}

TEST_CASE("what was checked is not said to be open") {
  auto checkpoint = opened_fixture("torch-2.14/healthy_moe_ep");
  CHECK(is_open(looked(*checkpoint, at(Depth::kMetadata)), "in each item's header",
                "--depth headers"));
  CheckOptions options = at(Depth::kData);
  auto spec = load_spec(folder("torch-2.14/healthy_moe_ep/spec.json"));
  REQUIRE(spec.has_value());
  options.spec = std::make_shared<const Spec>(std::move(*spec));
  CheckReport report = looked(*checkpoint, options);
  CHECK_FALSE(is_open(report, "", "--data"));
  CHECK_FALSE(is_open(report, "names", ""));
  CHECK_FALSE(is_open(report, "placements", ""));
  CHECK(is_open(report, "row order", "--against"));
  options.spec = nullptr;
  options.reference = checkpoint;
  options.mesh = *parse_mesh("ep_shard=2,ep=2");
  report = looked(*checkpoint, options);
  CHECK_FALSE(is_open(report, "row order", ""));
  CHECK_FALSE(is_open(report, "never saved", ""));
  CHECK(is_open(report, "placements", "--spec"));
}

TEST_CASE("bytes without checksums and entries that are not tensors stay open at every depth") {
  CheckReport raw = looked(*opened_fixture("torch-2.14/healthy_hf_sharded"), at(Depth::kData));
  CHECK(is_open(raw, "are unchanged since the save", "checksums"));
  auto with_objects = opened_fixture("torch-2.14/healthy_fsdp");
  if (!with_objects->objects().empty())
    CHECK(is_open(looked(*with_objects, at(Depth::kData)), "next to the tensors", "program"));
}

TEST_CASE("that every data file is of the same save is left open, as nothing in them tells") {
  auto several = opened_fixture("torch-2.14/healthy_fsdp");
  CheckOptions options = at(Depth::kData);
  CHECK(is_open(looked(*several, options), "from one save", "integrity.json"));
  options.reference = opened_fixture("torch-2.14/healthy_fsdp");
  CHECK_FALSE(is_open(looked(*several, options), "from one save", ""));
  options.depth = Depth::kHeaders;
  CHECK(is_open(looked(*several, options), "from one save", "--against"));

  CheckpointBuilder builder;  // of no folder
  builder.set_format(several->format());
  builder.add_tensor("w", Dtype::kFloat32, Extents{4});
  builder.add_chunk(Extents{0}, Extents{4}, ItemPlace{builder.file("__0_0.distcp"), 0, 64});
  CHECK_FALSE(is_open(looked(*builder.finish(), at(Depth::kMetadata)), "from one save", ""));
}

TEST_CASE("a hint that parts may be gone is in the headline of every report") {
  for (const char* fixture : {"torch-2.14/s5_tp_axis_dropped", "torch-2.6/s5_tp_axis_dropped",
                              "real-code/s5_te_tp_axis_absent_2x2"}) {
    CAPTURE(fixture);
    auto checkpoint = opened_fixture(fixture);
    CheckReport report = looked(*checkpoint, at(Depth::kHeaders));
    CHECK(report.verdict == Verdict::kClean);
    CHECK(rules_with_hints(report.unjudged) == std::vector<std::string>{"writer-mosaic"});
    CHECK(report.unjudged.front().hint == "writer-mosaic");
    std::string text = check_to_text(*checkpoint, report, {});
    CHECK(text.find("no finding, but a hint: writer-mosaic") != std::string::npos);
    ReportInput input{*checkpoint, report, nullptr, nullptr, ""};
    CHECK(report_markdown(input).starts_with("# No finding, but a hint: writer-mosaic"));
    std::string page = report_html(input);
    CHECK(page.find("<header class=\"warning\">") != std::string::npos);
    CHECK(page.find("What was not checked") != std::string::npos);
    CHECK(check_to_json(report).find("\"hint\": \"writer-mosaic\"") != std::string::npos);
  }
  CHECK(rules_with_hints(
            looked(*opened_fixture("torch-2.14/healthy_moe_ep"), at(Depth::kHeaders)).unjudged)
            .empty());
}

TEST_CASE("one line says what is open and has each need once") {
  std::vector<Unjudged> list = {{"shapes", "--spec"}, {"values", "--data"}, {"names", "--spec"}};
  CHECK(to_text(list) == "shapes, names (--spec); values (--data)");
}
