// The plan that tests of disks carry out: of a tensor "w" of [6, 4], saved in tiles of three rows.
#pragma once

#include <doctest/doctest.h>

#include "core/repair/plan/plan.h"

namespace shw {

// Reorders rows: either by moving bytes, or only by new boxes, which is possible in place.
inline Plan plan_of_rows(const Checkpoint& checkpoint, bool moves) {
  Finding finding;
  finding.rule = "planted";
  finding.subjects = {"w"};
  if (moves) {
    finding.diagnoses = {BlocksPermuted{TensorId{0}, 0, 1, {5, 4, 3, 2, 1, 0}}};
  } else {
    finding.diagnoses = {WrongBoxes{TensorId{0}, {6, 4}, {{{3, 0}, {3, 4}}, {{0, 0}, {3, 4}}}}};
  }
  CheckReport report;
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  return *plan;
}

}  // namespace shw
