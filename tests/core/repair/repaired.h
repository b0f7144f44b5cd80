// A checkpoint in which one tensor lost rows, and its repaired result.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/verify.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

namespace shw {

inline constexpr const char* kCutOff = "optimizer.state.0.exp_avg";

// Rows 2 and 3 of 6 survive in one tensor; next to it a healthy one in two tiles.
inline void write_cut_off(const std::string& path) {
  MadeTensor state{kCutOff, {2, 3}, {{whole(Extents{2, 3}), {2, 3}, {6, 7, 8, 9, 10, 11}, 1}}};
  MadeTensor healthy{
      "w",
      {4, 2},
      {{{{0, 0}, {2, 2}}, {2, 2}, {1, 2, 3, 4}, 0}, {{{2, 0}, {2, 2}}, {2, 2}, {5, 6, 7, 8}, 1}}};
  write_checkpoint(path, {state, healthy});
  put(path + "/common.pt", "what was next to");
}

inline Plan plan_of_cut_off(const Checkpoint& checkpoint, Diagnosis diagnosis) {
  Finding finding;
  finding.rule = "local-saved-as-global";
  finding.subjects = {std::string(checkpoint.fqn(tensor_of(diagnosis)))};
  finding.diagnoses = {std::move(diagnosis)};
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  return std::move(*plan);
}

inline std::string repair_cut_off(const std::string& bad, const std::string& out,
                                  bool in_place = false) {
  auto checkpoint = opened(bad);
  TensorId tensor = *checkpoint->find(kCutOff);
  Plan plan = plan_of_cut_off(
      *checkpoint,
      PartlyLost{
          tensor, {6, 3}, {{checkpoint->chunks(tensor)[0], Box{{0, 0}, {2, 3}}, {2, 0}}}, ""});
  auto result = apply_plan(*checkpoint, plan, {in_place ? "" : out, in_place});
  if (!result) FAIL(result.error().message);
  return result->output;
}

struct Repaired {
  TemporaryFolder folder;
  std::string out;
  Repaired() {
    write_cut_off(folder / "bad");
    out = repair_cut_off(folder / "bad", folder / "good");
  }
  std::string copy(const std::string& name) const {
    std::filesystem::remove_all(folder / name);
    std::filesystem::copy(out, folder / name, std::filesystem::copy_options::recursive);
    return folder / name;
  }
};

inline std::string outcome_of(const std::string& path) {
  auto report = verify_repair(path);
  return report ? std::string(name(report->outcome)) : "error";
}

}  // namespace shw
