// Carries a plan out, beside what was opened or in place (in_place.h); what came out is proved
// (verify.h), and says so (certificate.h).
//
// Never writes into what was opened, in place excepted: a new folder is made, proved, and gets its
// name last (core/exec/folder_run.h).
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/verify.h"
#include "core/repair/run/in_place.h"
#include "core/repair/run/repair_result.h"

namespace shw {

class Store;

// Where a repair will write: what a person is asked before anything is. An error where it cannot.
Result<std::string> output_of(const Store& store, const Checkpoint& checkpoint,
                              const ApplyOptions& options);

Result<RepairResult> apply_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress = nullptr);
// On this machine's own files.
Result<RepairResult> apply_plan(const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress = nullptr);

}  // namespace shw
