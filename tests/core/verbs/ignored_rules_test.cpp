#include "core/verbs/ignored_rules.h"

#include <doctest/doctest.h>

using namespace shw;
using namespace shw::verbs;

namespace {

using Words = std::vector<std::string>;

Words read_toml(const std::string& text, const std::string& section = "") {
  auto ignored = ignored_in_toml(text, section, "shardwright.toml");
  REQUIRE(ignored.has_value());
  return *ignored;
}

CheckReport report_of(std::initializer_list<std::pair<const char*, Severity>> findings) {
  CheckReport report;
  report.verdict = Verdict::kFindings;
  for (const auto& [rule, severity] : findings) {
    Finding finding;
    finding.rule = rule;
    finding.severity = severity;
    report.findings.push_back(finding);
  }
  return report;
}

}  // namespace

TEST_CASE("ignored rules: the list of a TOML file is read over one line or several") {
  CHECK(read_toml("ignore = [\"a\", 'b']\n") == Words{"a", "b"});
  CHECK(read_toml("# ignore = [\"x\"]\nignore=[ # these\n  \"a\", # \"y\"\n  \"b\",\n]\n") ==
        Words{"a", "b"});
  CHECK(read_toml("ignored = [\"a\"]\nother = 3\n").empty());
  CHECK(read_toml("[x]\nignore = [\"a\"]\n").empty());
  CHECK(read_toml("ignore = [\"no\"]\n[tool.shardwright]\nignore = [\"a\"]\n[tool.other]\nignore = "
                  "[\"z\"]\n",
                  "tool.shardwright") == Words{"a"});
}

TEST_CASE("ignored rules: a list that does not end is a usage error") {
  auto ignored = ignored_in_toml("ignore = [\"a\"\n", "", "shardwright.toml");
  REQUIRE_FALSE(ignored.has_value());
  CHECK(ignored.error().kind == ErrorKind::kUsage);
}

TEST_CASE("ignored rules: a rule that is none is answered with the one that is near") {
  auto ignored = ignored_rules({"value-statistic"}, "/no/such/folder");
  REQUIRE_FALSE(ignored.has_value());
  CHECK(ignored.error().advice.find("value-statistics") != std::string::npos);
  auto known = ignored_rules({"portability", "missing-key", "portability"}, "/no/such/folder");
  REQUIRE(known.has_value());
  CHECK(*known == Words{"missing-key", "portability"});
}

TEST_CASE("ignored rules: what is left out is listed under what was not checked") {
  CheckReport report =
      report_of({{"missing-key", Severity::kError}, {"portability", Severity::kInfo}});
  ignore_findings(report, {"missing-key", "short-file"});
  CHECK(report.verdict == Verdict::kClean);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].rule == "portability");
  REQUIRE(report.unjudged.size() == 1);
  CHECK(report.unjudged[0].what.find("missing-key") != std::string::npos);
}

TEST_CASE("ignored rules: a verdict stays where other findings are left or nothing was decided") {
  CheckReport left = report_of({{"missing-key", Severity::kError}, {"tied", Severity::kWarning}});
  ignore_findings(left, {"missing-key"});
  CHECK(left.verdict == Verdict::kFindings);
  CheckReport open = report_of({{"missing-key", Severity::kError}});
  open.verdict = Verdict::kUndecided;
  ignore_findings(open, {"missing-key"});
  CHECK(open.verdict == Verdict::kUndecided);
}
