// Applies a plan, into a new folder or in place (in_place.h), proves the result (verify.h) and
// certifies it (certificate.h).
//
// Never writes into the source, except in place: a new folder is written and proved under a
// temporary name and gets its final name last (core/exec/folder_run.h).
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

// The folder that a repair will write, to show the user before anything is written; an error if it
// cannot be written.
Result<std::string> output_of(const Store& store, const Checkpoint& checkpoint,
                              const ApplyOptions& options);

Result<RepairResult> apply_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress = nullptr);
// Applies the plan to local files.
Result<RepairResult> apply_plan(const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress = nullptr);

}  // namespace shw
