#include "core/verbs/check_context.h"

#include <doctest/doctest.h>

#include "core/report/report.h"

using namespace shw;

namespace {

Finding found(const std::string& rule, Severity severity, std::vector<std::string> subjects) {
  Finding finding;
  finding.rule = rule;
  finding.severity = severity;
  finding.subjects = std::move(subjects);
  return finding;
}

CheckReport gap_beside_what_was_not_read() {
  CheckReport report;
  report.verdict = Verdict::kFindings;
  report.findings = {found("coverage-gap", Severity::kWarning, {"w"}),
                     found("not-looked-at", Severity::kInfo, {"x"})};
  return report;
}

}  // namespace

TEST_CASE("what could not be checked stays open whatever a baseline knows") {
  CheckReport report = gap_beside_what_was_not_read();
  verbs::CheckRequest asked;
  asked.baseline = baseline_from_json(check_to_json(report), "b.json").value();
  CHECK_FALSE(verbs::must_fail_check(report, asked, Severity::kWarning));
  CHECK(verbs::is_open(report, asked));
  // Without this finding the baseline decides.
  report.findings.pop_back();
  CHECK_FALSE(verbs::is_open(report, asked));
}

TEST_CASE("what could not be checked stays open under a severity that does not fail") {
  CheckReport report = gap_beside_what_was_not_read();
  CHECK_FALSE(verbs::must_fail_check(report, {}, Severity::kError));
  CHECK(verbs::is_open(report, {}));
  CHECK(verbs::must_fail_check(report, {}, Severity::kWarning));
}

TEST_CASE("policies are read from JSON and from lines and a word that is none is refused") {
  using Words = std::vector<std::string>;
  CHECK(verbs::policies_from_text(R"({"require": ["coverage", "finite"]})", "p").value() ==
        Words{"coverage", "finite"});
  CHECK(verbs::policies_from_text("# ours\nrequire: [coverage, \"finite\"]  # both\n\n", "p")
            .value() == Words{"coverage", "finite"});
  for (const char* text : {"", "require:", "{}", R"({"require": "coverage"})", "coverage",
                           R"({"require": ["coverge"]})", R"({"require": [1]})", "{\"require\""}) {
    CAPTURE(text);
    auto refused = verbs::policies_from_text(text, "p");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::kUsage);
    CHECK(refused.error().place.file == "p");
  }
}
