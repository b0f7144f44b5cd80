// Checkpoints that real torch wrote: nothing above info on the healthy ones, one cause on S1.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/formats/open.h"
#include "core/rules/check.h"

using namespace shw;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> cases_named(std::string_view prefix) {
  std::vector<fs::path> found;
  for (const char* family : {"torch-2.6", "torch-2.14", "real-code"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(SHW_TEST_DATA) / family)) {
      if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
    }
  }
  REQUIRE_FALSE(found.empty());
  return found;
}

std::vector<Finding> above_info(const fs::path& folder, Depth depth, bool with_spec) {
  auto checkpoint = open_checkpoint((folder / "ckpt").string());
  if (!checkpoint) FAIL(checkpoint.error().message);
  CheckOptions options{depth, nullptr, std::nullopt};
  if (with_spec) {
    auto spec = load_spec((folder / "spec.json").string());
    if (!spec) FAIL(spec.error().message);
    options.spec = std::make_shared<Spec>(std::move(*spec));
  }
  auto report = check(**checkpoint, options);
  REQUIRE(report.has_value());
  std::vector<Finding> out;
  for (const Finding& finding : report->findings) {
    if (finding.severity > Severity::kInfo) out.push_back(finding);
  }
  CHECK(report->verdict == (out.empty() ? Verdict::kClean : Verdict::kFindings));
  return out;
}

}  // namespace

TEST_CASE("healthy checkpoints of real torch raise nothing above info, at any depth, spec or not") {
  for (const fs::path& folder : cases_named("healthy_")) {
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      for (bool with_spec : {false, true}) {
        CAPTURE(folder.string());
        CAPTURE(name(depth));
        CAPTURE(with_spec);
        for (const Finding& finding : above_info(folder, depth, with_spec))
          FAIL_CHECK(finding.rule << ": " << finding.cause);
      }
    }
  }
}

TEST_CASE("every S1 checkpoint of real torch has one cause, with its axes and factor") {
  for (const fs::path& folder : cases_named("s1_")) {
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
      for (bool with_spec : {false, true}) {
        CAPTURE(folder.string());
        CAPTURE(name(depth));
        CAPTURE(with_spec);
        auto findings = above_info(folder, depth, with_spec);
        REQUIRE(findings.size() == 1);
        const Finding& finding = findings.front();
        CHECK(finding.rule == "placement-axis-moved");
        CHECK(finding.subjects.size() == 3);
        REQUIRE(finding.diagnoses.size() == 3);
        for (const Diagnosis& diagnosis : finding.diagnoses) {
          const auto& moved = std::get<AxisMoved>(diagnosis);
          CHECK(moved.grown == 1);
          CHECK(moved.shrunk == 2);
          std::int64_t shards = folder.filename().string().ends_with("_view") ? 4 : 2;
          CHECK(moved.factor == shards);
        }
        CHECK(finding.remedy->lossless);
      }
    }
  }
}
