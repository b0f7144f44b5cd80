// The reported failures in checkpoints that real code and real torch wrote, checked by their truth.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/rules/check.h"
#include "core/rules/judge_diagnosis.h"

using namespace shw;

namespace {

struct Case {
  std::string folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Spec> spec;
  std::map<std::string, test::TruthTensor> truth;
};

Case open_case(const std::string& folder) {
  auto checkpoint = open_checkpoint(folder + "/ckpt");
  REQUIRE_MESSAGE(checkpoint.has_value(), checkpoint.error().message);
  auto truth = test::read_truth(folder + "/truth.safetensors");
  REQUIRE(truth.has_value());
  // Fixtures of other libraries have no spec.
  std::shared_ptr<const Spec> expected;
  if (std::filesystem::exists(folder + "/spec.json")) {
    auto spec = load_spec(folder + "/spec.json");
    REQUIRE(spec.has_value());
    expected = std::make_shared<Spec>(std::move(*spec));
  }
  return {folder, *checkpoint, std::move(expected), std::move(*truth)};
}

std::vector<Finding> look(const Case& item, bool with_spec, Depth depth = Depth::kHeaders) {
  auto report =
      check(*item.checkpoint, {depth, with_spec ? item.spec : nullptr, std::nullopt}, nullptr);
  REQUIRE(report.has_value());
  return report->findings;
}

std::vector<std::string> rules_above_info(const std::vector<Finding>& findings) {
  std::vector<std::string> rules;
  for (const Finding& finding : findings) {
    if (finding.severity > Severity::kInfo) rules.push_back(finding.rule + ": " + finding.cause);
  }
  return rules;
}

struct Sum {
  std::int64_t kept = 0, all = 0;
};

// Every diagnosis of a finding puts kept elements in their true place.
Sum judge_all(const Case& item, const Finding& finding) {
  Sum sum;
  CHECK(finding.diagnoses.size() == finding.subjects.size());
  for (const Diagnosis& diagnosis : finding.diagnoses) {
    std::string fqn(item.checkpoint->fqn(tensor_of(diagnosis)));
    CAPTURE(fqn);
    auto truth = item.truth.find(fqn);
    REQUIRE(truth != item.truth.end());
    std::int64_t kept = test::judge(*item.checkpoint, diagnosis, truth->second);
    sum.kept += kept;
    sum.all += volume(truth->second.shape).value();
  }
  return sum;
}

// Tensors whose saved shape or content is wrong: each must be named by a finding.
std::vector<std::string> damaged(const Case& item) {
  std::vector<std::string> names;
  for (const auto& [fqn, truth] : item.truth) {
    auto tensor = item.checkpoint->find(fqn);
    if (!tensor) continue;
    auto values = read_tensor(*item.checkpoint, *tensor);
    if (!values || values->shape != truth.shape || values->bytes != truth.bytes)
      names.push_back(fqn);
  }
  return names;
}

std::string kind_of(const std::string& folder) {
  return std::filesystem::path(folder).filename().string();
}

}  // namespace

TEST_CASE("healthy checkpoints raise nothing above info, with and without a spec") {
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    Case item = open_case(folder);
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders}) {
      CHECK(rules_above_info(look(item, true, depth)) == std::vector<std::string>{});
      CHECK(rules_above_info(look(item, false, depth)) == std::vector<std::string>{});
    }
  }
}

TEST_CASE("every reported failure is named first, and survivors go where the truth has them") {
  struct Expected {
    std::string prefix, rule;
    bool lossless;
  };
  const std::vector<Expected> expected = {
      {"s2_", "glu-split-local", false},
      {"s3_", "local-saved-as-global", false},
      {"s4_expert_order", "topology-locked", true},
      {"s4_", "axis-dropped", false},
      {"s5_strided", "strided-recorded-plain", true},
      {"s5_fused", "fused-per-rank", true},
      {"s5_", "axis-dropped", false},
  };
  for (const char* prefix : {"s2_", "s3_", "s4_", "s5_"}) {
    auto cases = test::fixture_cases(prefix);
    CHECK_FALSE(cases.empty());
    for (const std::string& folder : cases) {
      CAPTURE(folder);
      Case item = open_case(folder);
      auto wanted = std::find_if(expected.begin(), expected.end(), [&](const Expected& e) {
        return kind_of(folder).starts_with(e.prefix);
      });
      std::vector<Finding> findings = look(item, true);
      REQUIRE_FALSE(findings.empty());
      CHECK(findings.front().rule == wanted->rule);
      std::vector<std::string> explained;
      for (const Finding& finding : findings) {
        if (finding.diagnoses.empty()) continue;
        CAPTURE(finding.cause);
        Sum sum = judge_all(item, finding);
        CHECK(finding.remedy.has_value());
        // Files next to the checkpoint are used, so nothing of MLite's experts is lost.
        if (kind_of(folder).starts_with("s4_mlite")) CHECK(sum.kept == sum.all);
        if (finding.remedy) CHECK(finding.remedy->lossless == (sum.kept == sum.all));
        for (const std::string& subject : finding.subjects) explained.push_back(subject);
      }
      std::sort(explained.begin(), explained.end());
      CHECK(std::adjacent_find(explained.begin(), explained.end()) == explained.end());
      CHECK(explained == damaged(item));
    }
  }
}
