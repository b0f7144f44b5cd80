// Public failures in which the checkpoint itself has enough information: they are named, planned
// and repaired without a spec, and the result is right wherever the certificate does not say lost.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/repair/against_source.h"
#include "core/repair/lower/lower.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

struct Case {
  std::string fixture;
  std::vector<std::string> rules;  // the first findings of the report, in this order
  std::int64_t lost = 0;           // elements that cannot be restored
  std::string mesh;                // --mesh
};

CheckReport looked_at(const Checkpoint& checkpoint, const CheckOptions& options) {
  auto report = check(checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

bool is_lost(const PlannedTensor* planned, const Extents& at) {
  if (planned == nullptr) return false;
  return std::any_of(planned->lost.begin(), planned->lost.end(), [&](const Box& box) {
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (at[d] < box.offsets[d] || at[d] >= box.offsets[d] + box.sizes[d]) return false;
    }
    return true;
  });
}

// The slow way, by elements: each is right, or in a box that is reported as lost.
void compare(const TensorValues& actual, const TensorValues& truth, const PlannedTensor* planned) {
  REQUIRE(actual.shape == truth.shape);
  REQUIRE(actual.bytes.size() == truth.bytes.size());
  auto elements = static_cast<std::size_t>(volume(truth.shape).value_or(0));
  if (elements == 0) return;
  std::size_t size = truth.bytes.size() / elements;
  for (std::size_t i = 0; i < elements; ++i) {
    Extents at(truth.shape.size(), 0);
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t d = at.size(); d-- > 0; rest /= truth.shape[d]) at[d] = rest % truth.shape[d];
    bool equal = std::equal(truth.bytes.begin() + static_cast<std::ptrdiff_t>(i * size),
                            truth.bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * size),
                            actual.bytes.begin() + static_cast<std::ptrdiff_t>(i * size));
    if (!equal && !is_lost(planned, at)) FAIL_CHECK("element " << i << " is wrong and not lost");
  }
}

// A tensor that gives elements to another one must be planned too.
void refuses_loans(const Checkpoint& checkpoint, const Plan& plan) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (!is_pure_relabel(tensor)) continue;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (!chunk.item || checkpoint.tensor_of(*chunk.item) == tensor.tensor) continue;
      Plan edited = plan;
      std::erase_if(edited.tensors, [&](const PlannedTensor& one) {
        return one.tensor == checkpoint.tensor_of(*chunk.item);
      });
      auto refused = plan_from_json(checkpoint, plan_to_json(checkpoint, edited), "plan.json");
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().message.find("another tensor") != std::string::npos);
      return;
    }
  }
}

void repair_and_compare(const Case& item) {
  CAPTURE(item.fixture);
  std::string base = std::string(SHW_TEST_DATA) + "/" + item.fixture;
  TemporaryFolder folder;
  auto checkpoint = opened(base + "/ckpt");
  CheckOptions options;
  PlanOptions plan_options;
  if (!item.mesh.empty()) options.mesh = plan_options.mesh = parse_mesh(item.mesh).value();
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    CAPTURE(name(depth));
    CheckOptions at_depth = options;
    at_depth.depth = depth;
    CheckReport report = looked_at(*checkpoint, at_depth);
    REQUIRE(report.findings.size() >= item.rules.size());
    for (std::size_t i = 0; i < item.rules.size(); ++i) {
      CHECK(report.findings[i].rule == item.rules[i]);
      CHECK(report.findings[i].severity == Severity::kError);
    }
  }
  CheckReport report = looked_at(*checkpoint, options);
  auto plan = make_plan(*checkpoint, report, plan_options);
  REQUIRE(plan.has_value());
  CHECK(plan->undecided.empty());
  std::int64_t lost = 0;
  for (const PlannedTensor& tensor : plan->tensors) lost += tensor.lost_elements;
  CHECK(lost == item.lost);
  CHECK(plan->lossless == (item.lost == 0));
  // Writing the plan as JSON and reading it again gives the same plan.
  auto kept = plan_from_json(*checkpoint, plan_to_json(*checkpoint, *plan), "plan.json");
  if (!kept) FAIL(kept.error().place.tensor << ": " << kept.error().message);
  CHECK(plan_to_json(*checkpoint, *kept) == plan_to_json(*checkpoint, *plan));
  refuses_loans(*checkpoint, *plan);
  auto repaired = apply_plan(*checkpoint, *plan, {folder / "out"});
  if (!repaired) FAIL(repaired.error().message);
  auto verified = verified_against(folder / "out", *checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);

  auto result = opened(folder / "out"), truth = opened(base + "/truth.safetensors");
  for (std::uint32_t t = 0; t < truth->tensor_count(); ++t) {
    std::string fqn(truth->fqn(TensorId{t}));
    CAPTURE(fqn);
    auto tensor = result->find(fqn);
    auto old = checkpoint->find(fqn);
    REQUIRE(tensor.has_value());
    auto expected = read_tensor(*truth, TensorId{t}), actual = read_tensor(*result, *tensor);
    REQUIRE(expected.has_value());
    REQUIRE(actual.has_value());
    auto planned = std::find_if(plan->tensors.begin(), plan->tensors.end(),
                                [&](const PlannedTensor& one) { return one.tensor == *old; });
    compare(*actual, *expected, planned == plan->tensors.end() ? nullptr : &*planned);
  }
  // A repaired checkpoint needs no further repair.
  auto nothing = make_plan(*result, looked_at(*result, options), plan_options);
  REQUIRE(nothing.has_value());
  CHECK(nothing->tensors.empty());
}

}  // namespace

TEST_CASE("S2 and S3 of real torch and of the projects' own code need no spec to be repaired") {
  const std::string glu = "glu-split-local", local = "local-saved-as-global";
  for (const char* version : {"torch-2.6", "torch-2.14"}) {
    std::string torch = std::string(version) + "/";
    repair_and_compare({torch + "s2_swiglu_t1", {glu}, 32, ""});
    repair_and_compare({torch + "s2_swiglu_t1_f4", {glu}, 96, ""});
    repair_and_compare({torch + "s2_swiglu_t2", {glu}, 96, ""});
    repair_and_compare({torch + "s3_fusedadam_plain_state", {local}, 153, ""});
  }
  repair_and_compare({"real-code/s2_megatron_t2_f1", {glu, local}, 288, ""});
  repair_and_compare({"real-code/s3_te_fsdp4_uneven_fqn", {local}, 198, ""});
}

TEST_CASE("S5 E1 needs the mesh alone: names say which matrices tensor parallelism cuts") {
  for (const char* fixture : {"torch-2.6/s5_tp_axis_dropped", "torch-2.14/s5_tp_axis_dropped"})
    repair_and_compare({fixture, {"axis-dropped"}, 84, "dp=2,tp=2"});
  repair_and_compare({"real-code/s5_te_tp_axis_absent_2x2", {"axis-dropped"}, 80, "dp=2,tp=2"});
}

TEST_CASE("a mesh on which neighbours are copies takes the hint away") {
  auto checkpoint = opened(std::string(SHW_TEST_DATA) + "/torch-2.14/s4_expert_axis_dropped/ckpt");
  for (const char* mesh : {"dp_shard=2,dp_replicate=2", "dp=2,tp=2", "ep=4"}) {
    CheckOptions options;
    options.mesh = parse_mesh(mesh).value();
    CheckReport report = looked_at(*checkpoint, options);
    for (const Finding& finding : report.findings) {
      // If another mesh is given, mesh-contradicted may be reported, but never the hint.
      CHECK(finding.rule != "writer-mosaic");
      CHECK((finding.severity == Severity::kInfo || finding.rule == "mesh-contradicted"));
    }
  }
}

TEST_CASE("S4 and S5 E1 where nothing decides are reported, and nothing is planned") {
  struct Told {
    const char* fixture;
    const char* rule;
    const char* mesh = "";  // --mesh
    Severity severity = Severity::kWarning;
  };
  // FSDP on a mesh whose inner axis is cp looks like S5 E1 and is healthy: no more than a hint.
  constexpr Severity kHint = Severity::kInfo;
  for (Told told : {Told{"torch-2.6/s4_expert_axis_dropped", "writer-mosaic"},
                    Told{"torch-2.14/s4_expert_axis_dropped", "writer-mosaic"},
                    Told{"torch-2.14/s4_expert_axis_dropped_8", "writer-mosaic"},
                    Told{"torch-2.14/s4_expert_axis_dropped", "writer-mosaic", "edp=2,ep=2"},
                    Told{"torch-2.14/s4_expert_axis_dropped_8", "writer-mosaic", "edp=4,ep=2"},
                    Told{"real-code/s4_mlite_edp2_ep2", "axis-dropped"},
                    Told{"real-code/s4_mlite_edp2_ep2", "axis-dropped", "edp=2,ep=2"},
                    Told{"torch-2.6/s5_tp_axis_dropped", "writer-mosaic", "", kHint},
                    Told{"torch-2.14/s5_tp_axis_dropped", "writer-mosaic", "", kHint},
                    Told{"real-code/s5_te_tp_axis_absent_2x2", "writer-mosaic", "", kHint}}) {
    CAPTURE(std::string(told.fixture));
    auto checkpoint = opened(std::string(SHW_TEST_DATA) + "/" + told.fixture + "/ckpt");
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      CheckOptions options;
      options.depth = depth;
      if (told.mesh[0] != 0) options.mesh = parse_mesh(told.mesh).value();
      CheckReport report = looked_at(*checkpoint, options);
      REQUIRE_FALSE(report.findings.empty());
      const Finding& finding = report.findings.front();
      CHECK(finding.rule == told.rule);
      CHECK(finding.severity == told.severity);
      CHECK(finding.diagnoses.empty());
      CHECK(std::any_of(finding.evidence.begin(), finding.evidence.end(),
                        [](const auto& one) { return one.first == "undecided"; }));
      auto plan = make_plan(*checkpoint, report, {});
      REQUIRE(plan.has_value());
      CHECK(plan->tensors.empty());
      CHECK(plan->undecided.size() == (told.severity == kHint ? 0 : 1));
    }
  }
}
