// JUnit XML for CI dashboards: testsuites, testsuite, and testcase with failure, error,
// skipped or system-out. There is no standard; Jenkins, GitLab and GitHub actions all read
// these.
#include <map>
#include <vector>

#include "core/base/words.h"
#include "core/report/ci_forms.h"
#include "core/report/text_words.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::size_t kMaxListed = 200;  // subjects per finding

// Escapes for XML. Characters that XML 1.0 lacks are already replaced by printable().
std::string xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = 1;
    switch (text.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        length = add_printable(out, text);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string finding_body(const Finding& finding) {
  std::string text = finding.cause + "\n";
  for (std::size_t i = 0; i < finding.subjects.size() && i < kMaxListed; ++i)
    text += "  " + finding.subjects[i] + "\n";
  if (finding.subjects.size() > kMaxListed)
    text += "  and " + human_count(finding.subjects.size() - kMaxListed) + " more\n";
  return text + (finding.remedy ? finding.remedy->text : "There is no safe remedy.") + "\n";
}

enum class TestCaseOutcome : std::uint8_t { kPassed, kFailed, kError, kSkipped };
struct TestCase {
  std::string name, title;
  TestCaseOutcome end = TestCaseOutcome::kPassed;
  std::string type, summary, body;  // of a failure or error, or why it was skipped
  std::string said;  // output of findings that do not fail: infos and those of the baseline
};

// Undecided findings are skipped tests, even if in the baseline: passing would hide them.
void add_undecided(const Finding& finding, TestCase& out) {
  if (out.end != TestCaseOutcome::kError) out.summary = finding.cause;
  out.end = TestCaseOutcome::kError;
  out.type = "undecided";
  out.body += finding_body(finding);
}

TestCase junit_case_of_rule(const Rule& rule, const CheckReport& report,
                            const CheckContext& context) {
  TestCase out;
  out.name = std::string(rule.id);
  out.title = std::string(rule.title);
  for (const Finding& finding : report.findings) {
    if (finding.rule != rule.id) continue;
    bool known = context.baseline != nullptr && is_known(*context.baseline, finding);
    if (rule.leaves_undecided) {
      add_undecided(finding, out);
      continue;
    }
    if (finding.severity == Severity::kInfo || known) {
      out.said += (known ? "known before: " : "") + finding_body(finding);
      continue;
    }
    if (out.end != TestCaseOutcome::kFailed) out.summary = finding.cause;
    out.end = TestCaseOutcome::kFailed;
    if (out.type != "error") out.type = finding.severity == Severity::kError ? "error" : "warning";
    out.body += finding_body(finding);
  }
  if (out.end == TestCaseOutcome::kPassed && out.said.empty() && rule.depth > report.depth) {
    out.end = TestCaseOutcome::kSkipped;
    out.summary = "needs --depth " + std::string(name(rule.depth));
  }
  return out;
}

TestCase junit_case_of_rule(const PolicyAnswer& policy) {
  TestCase out;
  out.name = "require/" + policy.require;
  out.title = "Required: " + policy.require;
  out.summary = policy.why;
  if (policy.verdict == PolicyVerdict::kMet) out.said = policy.why + "\n";
  if (policy.verdict == PolicyVerdict::kMet) return out;
  bool broken = policy.verdict == PolicyVerdict::kBroken;
  out.end = broken ? TestCaseOutcome::kFailed : TestCaseOutcome::kError;
  out.type = broken ? "error" : "undecided";
  out.body = policy.why + "\n";
  for (std::size_t i = 0; i < policy.subjects.size() && i < kMaxListed; ++i)
    out.body += "  " + policy.subjects[i] + "\n";
  return out;
}

std::string element_of(const TestCase& test, const std::string& suite) {
  std::string out =
      "    <testcase classname=\"" + xml(suite) + "\" name=\"" + xml(test.name) + "\" time=\"0\"";
  if (test.end == TestCaseOutcome::kPassed && test.said.empty()) return out + "/>\n";
  out += ">\n";
  if (test.end == TestCaseOutcome::kFailed || test.end == TestCaseOutcome::kError) {
    const std::string element = test.end == TestCaseOutcome::kFailed ? "failure" : "error";
    out += "      <" + element + " type=\"" + test.type + "\" message=\"" + xml(test.summary) +
           "\">" + xml(test.body) + "</" + element + ">\n";
  }
  if (test.end == TestCaseOutcome::kSkipped)
    out += "      <skipped message=\"" + xml(test.summary) + "\"/>\n";
  if (!test.said.empty()) out += "      <system-out>" + xml(test.said) + "</system-out>\n";
  return out + "    </testcase>\n";
}

std::string junit_xml_of_cases(const std::vector<TestCase>& tests, const CheckContext& context) {
  std::size_t failed = 0, errors = 0, skipped = 0;
  std::string body;
  for (const TestCase& test : tests) {
    failed += test.end == TestCaseOutcome::kFailed ? 1 : 0;
    errors += test.end == TestCaseOutcome::kError ? 1 : 0;
    skipped += test.end == TestCaseOutcome::kSkipped ? 1 : 0;
    body += element_of(test, "shardwright");
  }
  const std::string counts = "tests=\"" + std::to_string(tests.size()) + "\" failures=\"" +
                             std::to_string(failed) + "\" errors=\"" + std::to_string(errors) +
                             "\" skipped=\"" + std::to_string(skipped) + "\" time=\"0\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + counts +
         ">\n  <testsuite name=\"" + xml(context.path) + "\" " + counts + ">\n" + body +
         "  </testsuite>\n</testsuites>\n";
}

}  // namespace

std::string report_junit(const CheckReport& report, const CheckContext& context) {
  std::vector<TestCase> tests;
  for (const Rule& rule : all_rules()) tests.push_back(junit_case_of_rule(rule, report, context));
  for (const PolicyAnswer& policy : context.policies) tests.push_back(junit_case_of_rule(policy));
  return junit_xml_of_cases(tests, context);
}

std::string failed_junit(const std::string& error, const CheckContext& context) {
  TestCase test;
  test.name = "report";
  test.title = "The checkpoint was checked";
  test.end = TestCaseOutcome::kError;
  test.type = "failed";
  test.summary = error.substr(0, error.find('\n'));
  test.body = error + "\n";
  return junit_xml_of_cases({test}, context);
}

}  // namespace shw
