#include "core/report/ci_forms.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/model/builder.h"

using namespace shw;

namespace {

// One tensor without a folder, since nothing of it is read.
std::shared_ptr<const Checkpoint> one_tensor() {
  CheckpointBuilder builder;
  builder.add_tensor("w", Dtype::kFloat32, Extents{2});
  builder.add_chunk(Extents{0}, Extents{2}, {builder.file("data"), 0, 8});
  return builder.finish();
}

Finding about_w(const std::string& rule, Severity severity) {
  Finding finding;
  finding.rule = rule;
  finding.severity = severity;
  finding.subjects = {"w"};
  finding.cause = "Something is to be said of w.";
  return finding;
}

CheckReport report_of(std::vector<Finding> findings, Verdict verdict) {
  CheckReport report;
  report.verdict = verdict;
  report.findings = std::move(findings);
  return report;
}

CheckReport not_read() {
  return report_of({about_w("not-looked-at", Severity::kInfo)}, Verdict::kUndecided);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

nlohmann::json sarif_run(const CheckReport& report, const CheckContext& context) {
  return nlohmann::json::parse(report_sarif(*one_tensor(), report, context))["runs"][0];
}

const std::vector<PolicyAnswer> kPolicyOpen = {
    {"finite", PolicyVerdict::kUndecided, "values were not read", {}}};
const std::vector<PolicyAnswer> kPolicyMet = {{"finite", PolicyVerdict::kMet, "all are", {}}};

}  // namespace

TEST_CASE("JUnit has an error where something could not be checked, known or not") {
  const CheckReport report = not_read();
  const Baseline baseline = baseline_from_json(check_to_json(report, {}), "b").value();
  CheckContext context{"ck"};
  for (const Baseline* known : {static_cast<const Baseline*>(nullptr), &baseline}) {
    context.baseline = known;
    std::string text = report_junit(report, context);
    CHECK(says(text, "name=\"not-looked-at\" time=\"0\">\n      <error type=\"undecided\""));
    CHECK(says(text, "failures=\"0\" errors=\"1\""));
  }
  std::string clean = report_junit(report_of({}, Verdict::kClean), {"ck"});
  CHECK(says(clean, "failures=\"0\" errors=\"0\""));
  CHECK_FALSE(says(clean, "<error"));
}

TEST_CASE("JUnit fails what is new and passes what is known and only to know") {
  CheckReport report = report_of(
      {about_w("coverage-gap", Severity::kError), about_w("many-chunks", Severity::kInfo)},
      Verdict::kFindings);
  std::string text = report_junit(report, {"ck"});
  CHECK(says(text, "<failure type=\"error\""));
  CHECK(says(text, "failures=\"1\" errors=\"0\""));
  const Baseline baseline = baseline_from_json(check_to_json(report, {}), "b").value();
  CheckContext context{"ck"};
  context.baseline = &baseline;
  text = report_junit(report, context);
  CHECK(says(text, "failures=\"0\" errors=\"0\""));
  CHECK(says(text, "<system-out>known before: "));
}

TEST_CASE("a policy that is open is an error in JUnit, a warning in SARIF and in the log") {
  const CheckReport clean = report_of({}, Verdict::kClean);
  CheckContext context{"ck"};
  context.policies = kPolicyOpen;
  CHECK(says(report_junit(clean, context), "<error type=\"undecided\" message=\"values were"));
  CHECK(says(report_github(clean, context), "::warning file=ck,title=require finite::"));
  auto run = sarif_run(clean, context);
  CHECK(run["invocations"][0]["executionSuccessful"] == false);
  CHECK(run["results"][0]["kind"] == "open");
  context.policies = kPolicyMet;
  CHECK_FALSE(says(report_junit(clean, context), "<error"));
  CHECK(report_github(clean, context).empty());
  CHECK(sarif_run(clean, context)["invocations"][0]["executionSuccessful"] == true);
}

TEST_CASE("SARIF is open and not successful where something could not be checked") {
  const CheckReport report = not_read();
  const Baseline baseline = baseline_from_json(check_to_json(report, {}), "b").value();
  CheckContext context{"ck"};
  context.baseline = &baseline;
  auto run = sarif_run(report, context);
  auto invocation = run["invocations"][0];
  CHECK(invocation["executionSuccessful"] == false);
  REQUIRE(invocation["toolExecutionNotifications"].size() == 1);
  auto note = invocation["toolExecutionNotifications"][0];
  CHECK(note["level"] == "warning");
  CHECK(note["descriptor"]["id"] == "not-looked-at");
  CHECK(run["results"][0]["kind"] == "open");
  CHECK(run["results"][0]["level"] == "none");
  CHECK(run["results"][0]["baselineState"] == "unchanged");
  auto found =
      sarif_run(report_of({about_w("coverage-gap", Severity::kError)}, Verdict::kFindings), {"ck"});
  CHECK(found["invocations"][0]["executionSuccessful"] == true);
  CHECK_FALSE(found["invocations"][0].contains("toolExecutionNotifications"));
  CHECK(found["results"][0]["kind"] == "fail");
  CHECK(found["results"][0]["level"] == "error");
}

TEST_CASE("the log warns of what could not be checked, known or not") {
  const CheckReport report = not_read();
  const Baseline baseline = baseline_from_json(check_to_json(report, {}), "b").value();
  CheckContext context{"ck"};
  context.baseline = &baseline;
  CHECK(says(report_github(report, context), "::warning file=ck,title=not-looked-at::"));
  CheckReport known = report_of({about_w("coverage-gap", Severity::kError)}, Verdict::kFindings);
  CHECK(says(report_github(known, {"ck"}), "::error file=ck,title=coverage-gap::"));
  const Baseline gap = baseline_from_json(check_to_json(known, {}), "b").value();
  context.baseline = &gap;
  CHECK(says(report_github(known, context), "::notice file=ck,title=coverage-gap::"));
}
