#include "core/report/baseline.h"

#include <doctest/doctest.h>

#include "core/report/ci_forms.h"

using namespace shw;

namespace {

Finding lost(std::vector<std::string> subjects, std::int64_t elements) {
  Finding finding;
  finding.rule = "glu-split-local";
  finding.consequence = Consequence::kSilentlyWrong;
  finding.subjects = std::move(subjects);
  finding.evidence = {{"total_lost_elements", elements},
                      {"total_kept_elements", 64 - elements},
                      {"lost_elements", Extents(finding.subjects.size(), elements)}};
  return finding;
}

CheckReport report_of(std::vector<Finding> findings, Depth depth = Depth::kHeaders) {
  CheckReport report;
  report.verdict = Verdict::kFindings;
  report.depth = depth;
  report.findings = std::move(findings);
  return report;
}

Baseline baseline_of(const CheckReport& report) {
  auto read = baseline_from_json(check_to_json(report, {}), "b.json");
  REQUIRE(read);
  return *read;
}

}  // namespace

TEST_CASE("a baseline knows the same finding and one that is less grave") {
  Baseline baseline = baseline_of(report_of({lost({"a", "b"}, 24)}));
  CHECK(is_known(baseline, lost({"a", "b"}, 24)));
  CHECK(is_known(baseline, lost({"b", "a"}, 20)));  // more kept elements are not a new damage
  CHECK(is_known(baseline, lost({"b"}, 24)));
  Finding milder = lost({"a"}, 24);
  milder.severity = Severity::kWarning;
  milder.consequence = Consequence::kHazard;
  CHECK(is_known(baseline, milder));
}

TEST_CASE("a baseline does not know a finding that is graver in any way") {
  Finding accepted = lost({"a", "b"}, 24);
  accepted.severity = Severity::kWarning;
  Baseline baseline = baseline_of(report_of({accepted}));
  REQUIRE(is_known(baseline, accepted));
  auto graver = [&](auto change) {
    Finding finding = accepted;
    change(finding);
    return !is_known(baseline, finding);
  };
  CHECK(graver([](Finding& one) { one.evidence[0].second = std::int64_t{25}; }));
  CHECK(graver([](Finding& one) { one.evidence[2].second = Extents{25, 23}; }));
  CHECK(graver([](Finding& one) { one.evidence[2].second = Extents{1, 1, 1}; }));
  CHECK(graver([](Finding& one) { one.evidence.emplace_back("gone", std::int64_t{1}); }));
  CHECK(graver([](Finding& one) { one.severity = Severity::kError; }));
  CHECK(graver([](Finding& one) { one.consequence = Consequence::kDataLost; }));
  CHECK(graver([](Finding& one) { one.subjects.emplace_back("c"); }));
  CHECK(graver([](Finding& one) { one.subjects.clear(); }));
  CHECK(graver([](Finding& one) { one.rule = "coverage-gap"; }));
}

TEST_CASE("baseline: other elements or items of the same size that are lost are not known") {
  auto gap_at = [](std::int64_t row, std::int64_t rows) {
    Finding gap = lost({"a"}, 8);
    gap.evidence.emplace_back("missing_boxes", std::vector<Box>{{{row, 0}, {rows, 4}}});
    return gap;
  };
  Baseline by_box = baseline_of(report_of({gap_at(4, 2)}));
  CHECK(is_known(by_box, gap_at(4, 2)));
  CHECK(is_known(by_box, gap_at(5, 1)));
  CHECK_FALSE(is_known(by_box, gap_at(6, 2)));
  CHECK_FALSE(is_known(by_box, gap_at(3, 2)));
  auto item = [](const std::string& text) {
    Finding finding = lost({"a"}, 8);
    finding.evidence.emplace_back("items", std::vector<std::string>{text});
    return finding;
  };
  Baseline by_item = baseline_of(report_of({item("a [0:4]")}));
  CHECK(is_known(by_item, item("a [0:4]")));
  CHECK_FALSE(is_known(by_item, item("a [4:8]")));
  Baseline by_count = baseline_of(report_of({item("a: 8 of 1,024 elements")}));
  CHECK(is_known(by_count, item("a: 4 of 1,024 elements")));
  CHECK_FALSE(is_known(by_count, item("a: 9 of 1,024 elements")));
  CHECK_FALSE(is_known(by_count, item("b: 8 of 1,024 elements")));
}

TEST_CASE("two accepted findings do not stand for one about the subjects of both") {
  Baseline baseline = baseline_of(report_of({lost({"a"}, 8), lost({"b"}, 16)}));
  CHECK(is_known(baseline, lost({"b"}, 16)));
  CHECK_FALSE(is_known(baseline, lost({"a"}, 16)));
  CHECK_FALSE(is_known(baseline, lost({"a", "b"}, 16)));
}

TEST_CASE("what is not told to the end is not what was told to the end") {
  Finding gap = lost({"a"}, 8);
  gap.evidence.emplace_back("complete", true);
  Baseline baseline = baseline_of(report_of({gap}));
  CHECK(is_known(baseline, gap));
  gap.evidence.back().second = false;
  CHECK_FALSE(is_known(baseline, gap));
}

TEST_CASE("only a look that is as deep and was told as much calls a finding gone") {
  CheckReport before = report_of({lost({"a", "b"}, 8)}, Depth::kData);
  before.unjudged = {{"contents of 2 objects", "the program that wrote them", {}}};
  Baseline baseline = baseline_of(before);
  using Lines = std::vector<std::string>;
  CHECK(fixed_since(baseline, before).empty());
  CheckReport now = report_of({lost({"a"}, 8)}, Depth::kData);
  CHECK(fixed_since(baseline, now) == Lines{"glu-split-local: b"});
  CHECK(fixed_since(baseline, report_of({}, Depth::kData)).size() == 2);
  CHECK(fixed_since(baseline, report_of({}, Depth::kHeaders)).empty());
  CHECK(fixed_since(baseline, report_of({}, Depth::kMetadata)).empty());
  now.unjudged = {{"names, shapes and row order", "--spec or --against", {}}};
  CHECK(fixed_since(baseline, now).empty());
}

TEST_CASE("a baseline that is not an answer of a check is refused") {
  for (const char* text :
       {"", "[1, 2]", "{}", R"({"findings": {}})", R"({"findings": [1]})",
        R"({"findings": [{"rule": "r", "severity": "error", "subjects": []}]})",
        R"({"findings": [{"rule": "r", "severity": "grave", "consequence": "none",
             "subjects": [], "evidence": {}}]})",
        R"({"findings": [{"rule": "r", "severity": "error", "consequence": "bad",
             "subjects": [], "evidence": {}}]})",
        R"({"findings": [{"rule": "r", "severity": "error", "consequence": "none",
             "subjects": [1], "evidence": {}}]})"}) {
    CAPTURE(text);
    auto read = baseline_from_json(text, "b.json");
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == ErrorKind::kUsage);
    CHECK(read.error().place.file == "b.json");
  }
  auto older = baseline_from_json(R"({"schema": "shardwright/1", "findings": [], "unjudged": []})",
                                  "b.json");
  REQUIRE_FALSE(older);
  CHECK(older.error().advice.find("check CHECKPOINT --json") != std::string::npos);
  auto huge = baseline_from_json(
      R"({"findings": [{"rule": "r", "severity": "error", "consequence": "none", "subjects": [],
          "evidence": {"n": 18446744073709551615, "list": [9223372036854775807, 1]}}]})",
      "b.json");
  REQUIRE(huge);
  CHECK(huge->accepted.at("r").front().counts.count("n") == 0);
}
