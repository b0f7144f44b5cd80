// F1.3: only the metadata was copied to this machine. Repairs that move no byte can be planned
// there.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

struct Planned {
  std::shared_ptr<const Checkpoint> checkpoint;
  Plan plan;
};

Planned plan_with_metadata_alone(const TemporaryFolder& folder, const std::string& prefix) {
  auto cases = test::fixture_cases(prefix);
  REQUIRE_FALSE(cases.empty());
  std::filesystem::copy_file(cases.front() + "/ckpt/.metadata", folder / ".metadata");
  auto checkpoint = open_checkpoint(folder.path());
  REQUIRE(checkpoint.has_value());
  auto spec = load_spec(cases.front() + "/spec.json");
  REQUIRE(spec.has_value());
  CheckOptions options;
  options.spec = std::make_shared<Spec>(std::move(*spec));
  auto report = check(**checkpoint, options);
  REQUIRE(report.has_value());
  auto plan = make_plan(**checkpoint, *report, {std::nullopt, options.spec});
  REQUIRE(plan.has_value());
  return {*checkpoint, std::move(*plan)};
}

}  // namespace

TEST_CASE("a relabel is planned without the data files, and not carried out without them") {
  TemporaryFolder folder, out;
  Planned made = plan_with_metadata_alone(folder, "s1_placement_not_transposed");
  REQUIRE(made.plan.operations.size() == 1);
  CHECK(made.plan.operations[0].kind == OperationKind::kRelabel);
  CHECK(made.plan.lossless);
  REQUIRE(made.plan.undecided.size() == 1);
  CHECK(made.plan.undecided[0].rule == "missing-file");
  auto repaired = apply_plan(*made.checkpoint, made.plan, {out / "repaired", false});
  REQUIRE_FALSE(repaired.has_value());
  CHECK(repaired.error().place.file.ends_with(".distcp"));
  CHECK_FALSE(std::filesystem::exists(out / "repaired"));
}

TEST_CASE("what has to read bytes is not planned while they are not there") {
  TemporaryFolder folder;
  Planned made = plan_with_metadata_alone(folder, "s2_swiglu_t2");
  CHECK(made.plan.operations.empty());
  CHECK(made.plan.undecided.size() >= 1);
}
