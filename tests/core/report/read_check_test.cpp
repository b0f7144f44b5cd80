#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/fixtures.h"
#include "core/formats/open.h"
#include "core/model/evidence.h"
#include "core/report/read_check.h"
#include "core/report/report.h"

using namespace shw;

namespace {

std::size_t read_back(const std::string& path, Depth depth) {
  CAPTURE(path);
  auto opened = open_checkpoint(path);
  if (!opened) return 0;
  CheckOptions options;
  options.depth = depth;
  auto report = check(**opened, options);
  REQUIRE(report.has_value());
  const std::string json = check_to_json(*report);
  auto read = check_from_json(json);
  if (!read) FAIL_CHECK(read.error().message);
  if (!read) return 0;
  CHECK(check_to_json(*read) == json);
  REQUIRE(read->findings.size() == report->findings.size());
  for (std::size_t i = 0; i < read->findings.size(); ++i) {
    const auto& was = report->findings[i].evidence;
    const auto& now = read->findings[i].evidence;
    REQUIRE(now.size() == was.size());
    for (std::size_t e = 0; e < was.size(); ++e) {
      CAPTURE(was[e].first);
      CHECK(is_evidence(now[e].first, now[e].second));
      // Only an empty list may come back as a list of another type.
      const bool is_same = now[e].second == was[e].second;
      if (!is_same) CHECK(json.find("\"" + was[e].first + "\": []") != std::string::npos);
    }
  }
  return read->findings.size();
}

Error refusal_of(const std::string& text) {
  auto read = check_from_json(text);
  REQUIRE_FALSE(read.has_value());
  return read.error();
}

}  // namespace

TEST_CASE("check_from_json: the answer of every fixture is read back as it was written") {
  std::size_t findings = 0;
  for (const std::string& folder : test::fixture_cases("")) {
    findings += read_back(folder + "/ckpt", Depth::kHeaders);
    findings += read_back(folder + "/ckpt", Depth::kData);
  }
  CHECK(findings > 100);
}

TEST_CASE("check_from_json: numbers that JSON cannot write come back as numbers") {
  CheckReport report;
  report.findings.resize(1);
  const double infinite = std::numeric_limits<double>::infinity();
  report.findings[0].evidence = {{"largest_ratio", infinite},       {"margin", std::nan("")},
                                 {"reference", std::string("NaN")}, {"bound", 2.0},
                                 {"boxes", std::vector<Box>{}},     {"ranks_missing", Extents{}}};
  auto read = check_from_json(check_to_json(report));
  REQUIRE(read.has_value());
  const Finding& finding = read->findings.at(0);
  CHECK(*find_evidence<double>(finding, "largest_ratio") == infinite);
  CHECK(std::isnan(*find_evidence<double>(finding, "margin")));
  CHECK(*find_evidence<std::string>(finding, "reference") == "NaN");
  CHECK(*find_evidence<double>(finding, "bound") == 2);
  CHECK(find_evidence<std::vector<Box>>(finding, "boxes") != nullptr);
  CHECK(find_evidence<Extents>(finding, "ranks_missing") != nullptr);
}

TEST_CASE("check_from_json: an answer that is an error is that error") {
  const Error error =
      refusal_of(error_to_json({ErrorKind::kIo, "cut off", {".metadata", 12}, "Copy it again."}));
  CHECK(error.kind == ErrorKind::kIo);
  CHECK(error.message == "cut off");
  CHECK(error.place.file == ".metadata");
  CHECK(error.place.offset == 12);
  CHECK(error.advice == "Copy it again.");
}

TEST_CASE("check_from_json: an answer with a member of another type is refused by its key") {
  const std::string whole = check_to_json(CheckReport{});
  REQUIRE(check_from_json(whole).has_value());
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK(refusal_of("").message == "is not an answer of `check --json`");
  CHECK(refusal_of("[]").message == "is not an answer of `check --json`");
  CHECK(refusal_of(with("shardwright/2", "shardwright/3")).message ==
        "is an answer of another version of shardwright");
  CHECK(refusal_of(with("\"clean\"", "\"fine\"")).message ==
        "has no \"verdict\" that this version can read");
  CHECK(refusal_of(with("\"findings\": []", "\"findings\": [{}]")).message ==
        "has no \"findings\" that this version can read");
  CHECK(refusal_of(with("\"unjudged\": []", "\"unjudged\": {}")).message ==
        "has no \"unjudged\" that this version can read");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += '[';
  CHECK(refusal_of(deep).message == "is not an answer of `check --json`");
}

TEST_CASE("check_from_json: a box that ends beyond 64 bits is refused") {
  CheckReport report;
  report.findings.resize(1);
  report.findings[0].evidence = {{"boxes", std::vector<Box>{{Extents{1}, Extents{2}}}}};
  std::string text = check_to_json(report);
  const std::size_t at = text.find("2\n", text.find("sizes"));
  REQUIRE(at != std::string::npos);
  REQUIRE(check_from_json(text).has_value());
  CHECK(refusal_of(text.replace(at, 1, "9223372036854775807")).message ==
        "has no \"findings\" that this version can read");
}

TEST_CASE("check_from_json: unknown keys are left out, and too many values are refused") {
  std::string text = check_to_json(CheckReport{});
  std::string many = "[[1, {\"a\": 2}]";
  for (int i = 0; i < 1000; ++i) many += ", [1]";
  text.insert(text.find('{') + 1, "\"unheard_of\": " + many + "],");
  auto read = check_from_json(text, 60);
  REQUIRE(read.has_value());
  CHECK(read->lacks_diagnoses);
  CHECK(read->verdict == Verdict::kClean);
  text = check_to_json(CheckReport{});
  text.replace(text.find("\"findings\": []"), 14, "\"findings\": " + many + "]");
  auto refused = check_from_json(text, 60);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "holds more than 60 values");
}
