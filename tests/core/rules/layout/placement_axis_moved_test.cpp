// S1: spec/failures.md section 2, its fixtures and its negatives.
#include "core/facts/layout/grown_axis.h"

#include <doctest/doctest.h>

#include "core/facts/names/expert_family.h"
#include "core/model/builder.h"
#include "core/rules/check.h"
#include "core/unnamed_format.h"

using namespace shw;

namespace {

struct CutTensor {
  std::string fqn;
  Extents shape, tile;  // cut into tiles of this size, row-major, ranks in that order
};

std::shared_ptr<const Checkpoint> saved(const std::vector<CutTensor>& layouts) {
  CheckpointBuilder builder;
  builder.set_format(test::kUnnamedFormat);
  for (const CutTensor& layout : layouts) {
    builder.add_tensor(layout.fqn, Dtype::kFloat32, layout.shape);
    Extents at(layout.shape.size(), 0);
    for (std::int64_t rank = 0;; ++rank) {
      FileId file = builder.file("__" + std::to_string(rank) + "_0.distcp");
      builder.add_chunk(at, layout.tile, ItemPlace{file, 0, 1});
      std::size_t d = at.size();
      while (d > 0 && (at[d - 1] += layout.tile[d - 1]) >= layout.shape[d - 1]) at[--d] = 0;
      if (d == 0) break;
    }
  }
  return builder.finish();
}

std::vector<Finding> found_above_info(const Checkpoint& checkpoint,
                                      const std::map<std::string, Extents>& expected = {},
                                      const char* placements = nullptr) {
  CheckOptions options{Depth::kMetadata, nullptr, std::nullopt};
  if (!expected.empty()) {
    Spec spec;
    for (const auto& [fqn, shape] : expected) {
      SpecEntry entry;
      entry.shape = shape;
      if (placements != nullptr) {
        entry.mesh = Mesh{{{"ep_shard", 2}, {"ep", 2}}};
        entry.placements = {*parse_placement(placements), *parse_placement("Shard(0)")};
      }
      spec.entries[fqn] = entry;
    }
    options.spec = std::make_shared<Spec>(std::move(spec));
  }
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  std::vector<Finding> out;
  for (Finding& finding : report->findings) {
    if (finding.severity > Severity::kInfo) out.push_back(std::move(finding));
  }
  return out;
}

const std::string kDown = "model.layers.3.moe.experts.down_proj.weight";
const std::string kGate = "model.layers.3.moe.experts.gate_proj.weight";
const std::string kUp = "model.layers.3.moe.experts.up_proj.weight";
const std::string kEmbed = "model.embed_tokens.weight";

// Experts E, inner I, hidden D, factor k, saved with the old placements; dim 0 cut in two.
std::vector<CutTensor> broken(std::int64_t e, std::int64_t i, std::int64_t d, std::int64_t k) {
  return {{kDown, {e, d * k, i / k}, {e / 2, d, i / k}},
          {kGate, {e, i * k, d / k}, {e / 2, i, d / k}},
          {kUp, {e, i * k, d / k}, {e / 2, i, d / k}},
          {kEmbed, {12, d}, {3, d}}};
}
std::vector<CutTensor> healthy(std::int64_t e, std::int64_t i, std::int64_t d, std::int64_t k) {
  return {{kDown, {e, d, i}, {e / 2, d, i / k}},
          {kGate, {e, i, d}, {e / 2, i, d / k}},
          {kUp, {e, i, d}, {e / 2, i, d / k}},
          {kEmbed, {12, d}, {3, d}}};
}
std::map<std::string, Extents> shapes(const std::vector<CutTensor>& layouts) {
  std::map<std::string, Extents> out;
  for (const CutTensor& layout : layouts) out[layout.fqn] = layout.shape;
  return out;
}

}  // namespace

TEST_CASE("F1.1: a lone tensor and its spec give the axes, the factor and the true shape") {
  auto checkpoint = saved({{kDown, {2, 6, 2}, {1, 3, 2}}});
  auto findings = found_above_info(*checkpoint, {{kDown, {2, 3, 4}}}, "Shard(2)");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "placement-axis-moved");
  CHECK(findings[0].severity == Severity::kError);
  REQUIRE(findings[0].diagnoses.size() == 1);
  const auto& moved = std::get<AxisMoved>(findings[0].diagnoses[0]);
  CHECK(moved.grown == 1);
  CHECK(moved.shrunk == 2);
  CHECK(moved.factor == 2);
  CHECK(moved.expected == Extents{2, 3, 4});
  CHECK(findings[0].cause.find("(Shard(1), Shard(0))") != std::string::npos);
  CHECK(findings[0].remedy->kind == "relabel");
}

TEST_CASE("any factor is found, with the spec and from the siblings alone, and healthy is silent") {
  for (std::int64_t k : {2, 3, 4, 5, 8}) {
    for (std::int64_t i : {4 * k, 6 * k}) {
      for (std::int64_t d : {5 * k, 7 * k, 4 * k * k}) {
        CAPTURE(k);
        CAPTURE(i);
        CAPTURE(d);
        auto truth = shapes(healthy(4, i, d, k));
        for (const auto& spec : {truth, std::map<std::string, Extents>{}}) {
          auto findings = found_above_info(*saved(broken(4, i, d, k)), spec);
          REQUIRE(findings.size() == 1);
          CHECK(findings[0].rule == "placement-axis-moved");
          REQUIRE(findings[0].diagnoses.size() == 3);
          for (const Diagnosis& diagnosis : findings[0].diagnoses) {
            const auto& moved = std::get<AxisMoved>(diagnosis);
            CHECK(moved.factor == k);
            CHECK(moved.grown == 1);
          }
          CHECK(found_above_info(*saved(healthy(4, i, d, k)), spec).empty());
        }
      }
    }
  }
}

TEST_CASE("F1.4 and F1.5: unsharded, or expected that way, is silent") {
  auto unsharded = saved({{kDown, {2, 3, 4}, {1, 3, 4}}});
  CHECK(found_above_info(*unsharded, {{kDown, {2, 3, 4}}}).empty());
  CHECK(found_above_info(*unsharded).empty());
  auto expected = saved({{kDown, {2, 6, 2}, {1, 3, 2}}});
  CHECK(found_above_info(*expected, {{kDown, {2, 6, 2}}}).empty());
  // The whole family looks moved, but the spec confirms its shapes, so nothing is reported.
  auto family = broken(4, 8, 20, 2);
  CHECK(found_above_info(*saved(family), shapes(family)).empty());
}

TEST_CASE("F1.7: a good checkpoint and a request with moved axes is the loader's fault") {
  auto request = shapes(broken(4, 8, 20, 2));
  auto findings = found_above_info(*saved(healthy(4, 8, 20, 2)), request, nullptr);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "placement-axis-moved");
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK_FALSE(findings[0].remedy.has_value());
  CHECK(findings[0].diagnoses.empty());
  CHECK(findings[0].subjects.size() == 3);
  CHECK(findings[0].cause.find("checkpoint is right") != std::string::npos);
  CHECK(findings[0].cause.find("dim 1 twice as long") != std::string::npos);
  // The same family consolidated into one tile per tensor.
  std::vector<CutTensor> whole_tensors = healthy(4, 8, 20, 2);
  for (CutTensor& layout : whole_tensors) layout.tile = layout.shape;
  findings = found_above_info(*saved(whole_tensors), request);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kWarning);
}

TEST_CASE("tiles that are cut another way make it a plain mismatch that says why") {
  auto checkpoint = saved({{kDown, {2, 6, 2}, {1, 6, 2}}});
  auto findings = found_above_info(*checkpoint, {{kDown, {2, 3, 4}}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "shape-mismatch");
  CHECK(findings[0].cause.find("chunks are not cut that way") != std::string::npos);
}

TEST_CASE("what a plain transpose explains as well needs the spec's placements or a sibling") {
  // [E, 4, 8] saved as [E, 8, 4]: moved by 2, or transposed.
  auto lone = saved({{kGate, {2, 8, 4}, {1, 4, 4}}});
  auto findings = found_above_info(*lone, {{kGate, {2, 4, 8}}});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "shape-mismatch");
  CHECK(findings[0].cause.find("transpose") != std::string::npos);
  findings = found_above_info(*lone, {{kGate, {2, 4, 8}}}, "Shard(2)");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule == "placement-axis-moved");
  findings = found_above_info(*saved(broken(2, 4, 8, 2)), shapes(healthy(2, 4, 8, 2)));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].subjects.size() == 3);
}

TEST_CASE("a spec that does not shard the short axis asks for another shape alone") {
  auto checkpoint = saved({{kDown, {2, 6, 2}, {1, 3, 2}}});
  for (const char* placements : {"Shard(1)", "Replicate"}) {
    CAPTURE(placements);
    auto findings = found_above_info(*checkpoint, {{kDown, {2, 3, 4}}}, placements);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule == "shape-mismatch");
    CHECK(findings[0].diagnoses.empty());
  }
  // If neighbouring tensors show that the axis moved, the spec agrees with them about shapes.
  CHECK(found_above_info(*saved(broken(4, 8, 20, 2)), shapes(healthy(4, 8, 20, 2)), "Shard(1)")[0]
            .rule == "placement-axis-moved");
}

TEST_CASE("two models of the same kind are not moved axes") {
  auto findings = found_above_info(*saved(healthy(4, 8, 20, 2)), shapes(healthy(4, 16, 10, 2)));
  REQUIRE_FALSE(findings.empty());
  for (const Finding& finding : findings) CHECK(finding.rule == "shape-mismatch");
}

TEST_CASE("experts kept in one layout, with I = 4 H, raise nothing without a hidden size") {
  // gate, up and down all [E, I, H], sharded on dim 1: a / d = c / b = 4.
  std::vector<CutTensor> layouts = {{kDown, {4, 32, 8}, {2, 16, 8}},
                                    {kGate, {4, 32, 8}, {2, 16, 8}},
                                    {kUp, {4, 32, 8}, {2, 16, 8}}};
  CHECK(found_above_info(*saved(layouts)).empty());
  layouts.push_back({kEmbed, {12, 8}, {3, 8}});
  CHECK(found_above_info(*saved(layouts)).empty());
}

TEST_CASE("without a hidden size the family alone is enough, and the confidence says so") {
  auto layouts = broken(4, 12, 20, 2);
  layouts.pop_back();
  auto findings = found_above_info(*saved(layouts));
  REQUIRE(findings.size() == 1);
  double confidence = 0;
  for (const auto& [key, value] : findings[0].evidence) {
    if (key == "confidence") confidence = std::get<double>(value);
  }
  CHECK(confidence == doctest::Approx(0.8));
}

TEST_CASE("optimizer states under the same names are checked with their own family") {
  auto layouts = broken(4, 12, 20, 2);
  for (const CutTensor& layout : broken(4, 12, 20, 2)) {
    if (layout.fqn != kEmbed)
      layouts.push_back({"optim.state." + layout.fqn + ".exp_avg", layout.shape, layout.tile});
  }
  auto findings = found_above_info(*saved(layouts));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].subjects.size() == 6);
}

TEST_CASE("a name's family is found in any spelling") {
  CHECK(family_name("model.layers.0.moe.gate_proj.weight")->key == "model.layers.0.moe.*.weight");
  CHECK(family_name("optim.state.m.experts.w2.weight.exp_avg")->key ==
        "optim.state.m.experts.*.weight.exp_avg");
  CHECK(family_name("up_proj")->member == FamilyName::Member::kUp);
  CHECK_FALSE(family_name("model.layers.0.moe.gate.weight").has_value());
  CHECK_FALSE(family_name("").has_value());
}

TEST_CASE("shapes are related by one factor on exactly two axes, or not at all") {
  CHECK(relate_axes(Extents{2, 6, 2}, Extents{2, 3, 4})->factor == 2);
  CHECK(relate_axes(Extents{4, 2, 6}, Extents{2, 4, 6})->grown == 0);
  CHECK_FALSE(relate_axes(Extents{2, 6, 2}, Extents{2, 3, 5}));
  CHECK_FALSE(relate_axes(Extents{2, 6, 4}, Extents{2, 3, 4}));
  CHECK_FALSE(relate_axes(Extents{4, 6, 2}, Extents{2, 3, 8}));
  CHECK_FALSE(relate_axes(Extents{2, 6}, Extents{2, 3, 4}));
  CHECK_FALSE(relate_axes(Extents{2, 0, 4}, Extents{2, 3, 0}));
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK_FALSE(relate_axes(Extents{huge, huge}, Extents{1, huge + 1}));
}
