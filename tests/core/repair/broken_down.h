// A checkpoint with one failure, and the checks of its repair.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/verify.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

namespace shw::test {

inline const Values kDown{0,  3,  6,  9,  1,  4,  7,  10, 2,  5,  8,  11,
                          12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23};
inline const Values kNorm{7, 8, 9};

// F1.1 of spec/failures.md 2.e on disk, with a healthy tensor next to it.
inline void write_broken(const std::string& path) {
  MadeTensor down{"down", {2, 6, 2}, {}};
  const Values payloads[] = {
      {0, 3, 1, 4, 2, 5}, {12, 15, 13, 16, 14, 17}, {6, 9, 7, 10, 8, 11}, {18, 21, 19, 22, 20, 23}};
  const Extents offsets[] = {{0, 0, 0}, {1, 0, 0}, {0, 3, 0}, {1, 3, 0}};
  for (std::uint32_t i = 0; i < 4; ++i)
    down.chunks.push_back({{offsets[i], {1, 3, 2}}, {1, 3, 2}, payloads[i], i});
  MadeTensor norm{"norm", {3}, {{{{0}, {3}}, {3}, kNorm, 1}}};
  write_checkpoint(path, {down, norm});
  put(path + "/common.pt", "what was next to");
}

inline Finding axis_moved() {
  Finding finding;
  finding.rule = "placement-axis-moved";
  finding.subjects = {"down"};
  finding.cause = "the placement was recorded for the wrong axis";
  finding.diagnoses = {AxisMoved{TensorId{0}, 1, 2, 2, {2, 3, 4}}};
  return finding;
}

inline Plan plan_of(const Checkpoint& checkpoint, std::vector<Finding> findings) {
  CheckReport report;
  report.findings = std::move(findings);
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  return *plan;
}

// Every file below a folder with its bytes.
inline std::map<std::string, std::string> all_files(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files[entry.path().string()] = contents(entry.path().string());
  }
  return files;
}

inline std::size_t entries_of(const std::string& path) {
  auto begin = std::filesystem::directory_iterator(path);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

inline VerifyReport::Outcome verdict(const std::string& path) {
  auto report = verify_repair(path);
  if (!report) FAIL(report.error().message);
  for (const std::string& reason : report->reasons) INFO(reason);
  return report->outcome;
}

}  // namespace shw::test
