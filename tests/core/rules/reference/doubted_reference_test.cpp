// A reference that was saved with the same mistake as the checkpoint proves nothing about it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/open.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/rules/check.h"
#include "core/temporary_folder.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> broken_cases() {
  std::vector<fs::path> found;
  for (const char* family : {"torch-2.6", "torch-2.14", "real-code"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(SHW_TEST_DATA) / family)) {
      std::string name = entry.path().filename().string();
      if (name.front() == 's' && entry.is_directory()) found.push_back(entry.path());
    }
  }
  REQUIRE(found.size() > 10);
  return found;
}

std::shared_ptr<const Checkpoint> opened_case(const fs::path& folder) {
  auto checkpoint = open_checkpoint((folder / "ckpt").string());
  if (!checkpoint) FAIL(checkpoint.error().message);
  return std::move(*checkpoint);
}

CheckReport looked_at(const std::shared_ptr<const Checkpoint>& checkpoint,
                      const std::shared_ptr<const Checkpoint>& reference) {
  CheckOptions options;
  options.depth = Depth::kHeaders;
  options.reference = reference;
  auto report = check(*checkpoint, options);
  REQUIRE(report.has_value());
  return std::move(*report);
}

std::set<std::pair<std::string, std::string>> rules_and_subjects(const CheckReport& report) {
  std::set<std::pair<std::string, std::string>> named;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::kInfo) continue;
    for (const std::string& subject : finding.subjects) named.emplace(finding.rule, subject);
  }
  return named;
}

}  // namespace

TEST_CASE("what a checkpoint shows alone it shows next to one that was saved wrong alike") {
  for (const fs::path& folder : broken_cases()) {
    CAPTURE(folder.string());
    auto checkpoint = opened_case(folder);
    CheckReport alone = looked_at(checkpoint, nullptr);
    CheckReport beside = looked_at(checkpoint, opened_case(folder));
    CHECK(rules_and_subjects(beside) == rules_and_subjects(alone));
    CHECK(rules_with_hints(beside.unjudged) == rules_with_hints(alone.unjudged));
  }
}

TEST_CASE("shapes that the reference is in doubt of itself are reported as not checked") {
  fs::path folder = fs::path(SHW_TEST_DATA) / "torch-2.14" / "s1_placement_not_transposed";
  CheckReport beside = looked_at(opened_case(folder), opened_case(folder));
  CHECK(std::any_of(beside.unjudged.begin(), beside.unjudged.end(), [](const Unjudged& one) {
    return one.what == "shapes of 3 tensors for which the reference itself has findings";
  }));
  CHECK(std::none_of(beside.findings.begin(), beside.findings.end(), [](const Finding& finding) {
    return finding.rule == "unexpected-key";  // the keys are in both
  }));
}

TEST_CASE("what was mended is sound next to the broken one that it was made of") {
  for (const fs::path& folder : broken_cases()) {
    CAPTURE(folder.string());
    auto broken = opened_case(folder);
    CheckReport report = looked_at(broken, broken);
    auto plan = make_plan(*broken, report, {});
    REQUIRE(plan.has_value());
    if (plan->empty()) continue;
    TemporaryFolder temporary;
    auto made = apply_plan(*broken, *plan, {temporary / "made", false});
    if (!made) FAIL(made.error().message);
    auto mended = open_checkpoint(made->output);
    REQUIRE(mended.has_value());
    CheckReport alone = looked_at(*mended, nullptr);
    CHECK(rules_and_subjects(looked_at(*mended, broken)) == rules_and_subjects(alone));
  }
}

TEST_CASE("tensors that a damaged reference cannot be asked about are reported as not checked") {
  fs::path sound = fs::path(SHW_TEST_DATA) / "torch-2.14" / "healthy_grid";
  TemporaryFolder temporary;
  fs::copy(sound / "ckpt", temporary / "ckpt");
  fs::permissions(temporary / "ckpt/__0_0.distcp", fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(temporary / "ckpt/__0_0.distcp", 100);
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    CheckOptions options;
    options.depth = depth;
    options.reference = opened_case(temporary.path());
    auto report = check(*opened_case(sound), options);
    REQUIRE(report.has_value());
    CHECK(rules_and_subjects(*report).empty());
    CHECK(std::any_of(report->unjudged.begin(), report->unjudged.end(), [](const Unjudged& one) {
      return one.what == "row order of 4 tensors that could not be compared with the reference";
    }));
  }
}
