// Moved axes in checkpoints written by real torch and AutoModel, from finding to proof.
#include <doctest/doctest.h>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/spec/spec.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

void repair_and_compare(const std::string& fixture, bool with_spec) {
  CAPTURE(fixture);
  std::string base = std::string(SHW_TEST_DATA) + "/" + fixture;
  TemporaryFolder folder;
  auto checkpoint = open_checkpoint(base + "/ckpt");
  REQUIRE(checkpoint.has_value());
  CheckOptions check_options;
  PlanOptions plan_options;
  if (with_spec) {
    auto spec = load_spec(base + "/spec.json");
    REQUIRE(spec.has_value());
    plan_options.spec = std::make_shared<const Spec>(std::move(*spec));
    check_options.spec = plan_options.spec;
  }
  auto report = check(**checkpoint, check_options);
  REQUIRE(report.has_value());
  auto plan = make_plan(**checkpoint, *report, plan_options);
  REQUIRE(plan.has_value());
  CHECK(plan->lossless);
  CHECK(plan->undecided.empty());
  CHECK_FALSE(plan->tensors.empty());
  auto repaired = apply_plan(**checkpoint, *plan, {folder / "out"});
  if (!repaired) FAIL(repaired.error().message);
  auto verified = verified_against(folder / "out", **checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);

  auto result = open_checkpoint(folder / "out");
  auto truth = open_checkpoint(base + "/truth.safetensors");
  REQUIRE(result.has_value());
  REQUIRE(truth.has_value());
  int compared = 0;
  for (std::uint32_t t = 0; t < (*truth)->tensor_count(); ++t) {
    auto tensor = (*result)->find((*truth)->fqn(TensorId{t}));
    if (!tensor) continue;
    CAPTURE(std::string((*truth)->fqn(TensorId{t})));
    auto expected = read_tensor(**truth, TensorId{t});
    auto actual = read_tensor(**result, *tensor);
    REQUIRE(expected.has_value());
    REQUIRE(actual.has_value());
    CHECK(actual->shape == expected->shape);
    CHECK(actual->bytes == expected->bytes);
    ++compared;
  }
  CHECK(compared > 0);
  // A repaired checkpoint needs no further repair.
  auto second = check(**result, check_options);
  REQUIRE(second.has_value());
  auto nothing = make_plan(**result, *second, plan_options);
  REQUIRE(nothing.has_value());
  CHECK(nothing->tensors.empty());
}

}  // namespace

TEST_CASE("a moved axis that torch or AutoModel saved is repaired to the truth, bit for bit") {
  for (bool with_spec : {true, false}) {
    CAPTURE(with_spec);
    repair_and_compare("torch-2.14/s1_placement_not_transposed", with_spec);
    repair_and_compare("torch-2.14/s1_placement_not_transposed_view", with_spec);
    repair_and_compare("real-code/s1_automodel_ep2_shard2", with_spec);
    repair_and_compare("real-code/s1_automodel_hf_sharded", with_spec);
  }
}
