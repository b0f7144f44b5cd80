#include "core/rules/consequence.h"

#include <doctest/doctest.h>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

Consequence of_case(const std::string& name) {
  auto folders = test::fixture_cases(name);
  REQUIRE_FALSE(folders.empty());
  auto checkpoint = open_checkpoint(folders.front() + "/ckpt");
  REQUIRE(checkpoint.has_value());
  auto spec = load_spec(folders.front() + "/spec.json");
  REQUIRE(spec.has_value());
  CheckOptions options;
  options.spec = std::make_shared<Spec>(std::move(*spec));
  auto report = check(**checkpoint, options);
  REQUIRE(report.has_value());
  return worst_consequence(report->findings);
}

}  // namespace

TEST_CASE("a verdict says whether a run would stop, go wrong unnoticed, or miss data") {
  CHECK(of_case("healthy_fsdp") == Consequence::kNone);
  CHECK(of_case("s1_placement_not_transposed") == Consequence::kWillNotLoad);
  // All shapes are as the model expects, so no loader complains.
  CHECK(of_case("s5_strided_recorded_as_plain") == Consequence::kSilentlyWrong);
  CHECK(of_case("s5_fused_glu_per_tp") == Consequence::kHazard);
  CHECK(of_case("s2_swiglu_t2") == Consequence::kDataLost);
  CHECK(of_case("s3_fusedadam_plain_state") == Consequence::kDataLost);
}

TEST_CASE("the title of a verdict is never more hopeful than a finding below it") {
  const auto of = [](std::string_view rule, Severity severity, Consequence consequence) {
    Finding finding;
    finding.rule = rule;
    finding.severity = severity;
    finding.consequence = consequence;
    return finding;
  };
  const Finding hint = of("sibling-axes", Severity::kWarning, Consequence::kHazard);
  const Finding mild = of("value-statistics", Severity::kWarning, Consequence::kHazard);
  const Finding stops = of("config-count", Severity::kError, Consequence::kWillNotLoad);
  const Finding wrong = of("norms-shifted", Severity::kError, Consequence::kSilentlyWrong);
  CHECK(title_of(hint) == "May not load");
  CHECK(title_of(std::vector{mild}) == "Loads, but is not right");
  CHECK(title_of(std::vector{mild, hint}) == "May not load");
  CHECK(title_of(std::vector{stops, hint}) == "Will not load");
  CHECK(title_of(std::vector{wrong, mild}) == "Loads, silently wrong");
  CHECK(title_of(std::vector{wrong, hint}) == "May not load, and is wrong");
  CHECK(title_of(std::vector{stops, wrong}) == "Will not load, and is wrong");
}

TEST_CASE("findings that only inform have no consequence, and the worst one counts") {
  Finding note, gap, warning, hostile;
  hostile.rule = "unsafe-pickle";
  note.severity = Severity::kInfo;
  gap.rule = "coverage-gap";
  warning.severity = Severity::kWarning;
  auto checkpoint = open_checkpoint(test::fixture_cases("healthy_fsdp").front() + "/ckpt");
  REQUIRE(checkpoint.has_value());
  std::vector<Finding> findings = {note, warning, gap, hostile};
  for (Finding& finding : findings) finding.consequence = consequence_of(finding, **checkpoint);
  CHECK(findings[0].consequence == Consequence::kNone);
  CHECK(findings[1].consequence == Consequence::kHazard);
  CHECK(findings[2].consequence == Consequence::kDataLost);
  CHECK(findings[3].consequence == Consequence::kHazard);
  CHECK(worst_consequence(findings) == Consequence::kDataLost);
  CHECK(name(Consequence::kSilentlyWrong) == "silently-wrong");
  CHECK(title_of(Consequence::kSilentlyWrong) == "Loads, silently wrong");
}
