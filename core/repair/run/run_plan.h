// Applies a plan into a new folder: repairs first, then the steps, in one pass over the bytes and
// with one certificate.
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

// The steps as text, for the user and the certificate.
std::vector<std::string> step_texts(const Plan& plan);
// kUsage if tensors are split into tiles that the format cannot store; otherwise whole tensors
// would be written silently.
Status check_tiles_have_place(const Plan& plan, const Format& format);
// The plan as applied, for the certificate and the journal: bound to this checkpoint, with missing
// files resolved.
Plan resolved_plan(const Plan& plan, const TargetOfPlan& target);

// Options of a run without an output folder: the contents of the certificate, and the way to prove
// them.
TargetRun target_run_of(const Plan& plan, const TargetOfPlan& target);
// Writes the result into options.out.
Result<RepairResult> run_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                              const ApplyOptions& options, Progress* progress);

}  // namespace shw
