// Repairs of the reported failures: equal to the truth wherever the certificate claims no loss,
// proved, and without findings afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/rules/judge_diagnosis.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

Result<CheckReport> look(const Checkpoint& checkpoint, const std::shared_ptr<const Spec>& spec) {
  return check(checkpoint, {Depth::kHeaders, spec, std::nullopt}, nullptr);
}

// Findings above info, except those about filled elements, which stay.
std::string listed_above_info(const CheckReport& report) {
  std::string text;
  for (const Finding& finding : report.findings) {
    if (finding.severity != Severity::kInfo && finding.rule != "filled-elements")
      text += finding.rule + ": " + finding.cause + "\n";
  }
  return text;
}

Certificate read_certificate(const std::string& path) {
  auto certificate = certificate_from_json(contents(path), path);
  REQUIRE_MESSAGE(certificate.has_value(), certificate.error().message);
  return *certificate;
}

// Elements outside the lost boxes equal the truth.
void compare(const TensorValues& values, const test::TruthTensor& truth,
             const std::vector<Box>& lost) {
  CHECK(values.shape == truth.shape);
  CHECK(values.uncovered == 0);
  std::size_t size = size_of(truth.dtype);
  std::int64_t wrong = 0;
  test::each_element(truth.shape, [&](const Extents& at) {
    bool masked = std::any_of(lost.begin(), lost.end(), [&](const Box& box) {
      for (std::size_t d = 0; d < at.size(); ++d) {
        if (at[d] < box.offsets[d] || at[d] >= box.offsets[d] + box.sizes[d]) return false;
      }
      return true;
    });
    std::size_t i = test::flat_index(at, truth.shape) * size;
    auto a = values.bytes.begin() + static_cast<std::ptrdiff_t>(i);
    auto b = truth.bytes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!masked && !std::equal(a, a + static_cast<std::ptrdiff_t>(size), b)) ++wrong;
  });
  CHECK(wrong == 0);
}

void repair_and_judge(const std::string& folder) {
  auto checkpoint = open_checkpoint(folder + "/ckpt");
  auto loaded = load_spec(folder + "/spec.json");
  auto truth = test::read_truth(folder + "/truth.safetensors");
  REQUIRE((checkpoint && loaded && truth));
  auto spec = std::make_shared<Spec>(std::move(*loaded));
  auto report = look(**checkpoint, spec);
  REQUIRE(report.has_value());
  auto plan = make_plan(**checkpoint, *report, {std::nullopt, spec});
  REQUIRE_MESSAGE(plan.has_value(), plan.error().message);
  for (const Finding& finding : plan->undecided) {
    CAPTURE(finding.rule);
    CAPTURE(finding.cause);
    CHECK(finding.severity == Severity::kInfo);
  }
  TemporaryFolder temporary;
  auto result = apply_plan(**checkpoint, *plan, {temporary / "repaired", false});
  REQUIRE_MESSAGE(result.has_value(), result.error().message);
  auto verified = verified_against(result->output, **checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);

  auto repaired = open_checkpoint(result->output);
  REQUIRE(repaired.has_value());
  Certificate certificate = read_certificate(result->certificate);
  std::size_t compared = 0;
  for (const TensorCertificate& tensor : certificate.tensors) {
    CAPTURE(tensor.fqn);
    auto expected = truth->find(tensor.fqn);
    auto id = (*repaired)->find(tensor.fqn);
    REQUIRE(id.has_value());
    if (expected == truth->end()) continue;
    auto values = read_tensor(**repaired, *id);
    REQUIRE_MESSAGE(values.has_value(), values.error().message);
    compare(*values, expected->second, tensor.lost_boxes);
    CHECK(tensor.kept + tensor.lost == volume(expected->second.shape));
    ++compared;
  }
  CHECK(compared == truth->size());

  auto again = look(**repaired, spec);
  REQUIRE(again.has_value());
  CHECK(listed_above_info(*again) == "");
  CHECK((again->verdict == Verdict::kClean) == certificate.lossless);
  auto nothing = make_plan(**repaired, *again, {std::nullopt, spec});
  REQUIRE(nothing.has_value());
  CHECK(nothing->tensors.empty());
}

}  // namespace

TEST_CASE("every repaired report equals the truth outside its mask and plans nothing again") {
  for (const char* prefix : {"s2_", "s3_", "s4_", "s5_"}) {
    for (const std::string& folder : test::fixture_cases(prefix)) {
      CAPTURE(folder);
      repair_and_judge(folder);
    }
  }
}
