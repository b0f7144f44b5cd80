// Carries a plan out into a new folder: findings first, then the steps, in one pass over the bytes
// and with one certificate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/io/store.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/run/make_target.h"
#include "core/repair/run/repair_result.h"

namespace shw {

// The steps in words, for a person and for the certificate.
std::vector<std::string> words_of_steps(const Plan& plan);
// kUsage where tensors are cut into tiles that the format does not have: whole tensors would be
// written where tiles were asked for, without a word.
Status check_tiles_have_place(const Plan& plan, const Format& format);
// The plan as it was carried out, for the certificate and the journal: for this checkpoint, with
// these files gone.
Plan resolved_plan(const Plan& plan, const TargetOfPlan& target);

// What is certified of a run of the plan, and how it is proved; without a folder to write into.
TargetRun target_run_of(const Plan& plan, const TargetOfPlan& target);
// Into options.out.
Result<RepairResult> run_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                              const ApplyOptions& options, Progress* progress);

}  // namespace shw
