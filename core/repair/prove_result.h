// Proves what a repair wrote against its source, and writes the certificate beside it.
#pragma once

#include "core/base/progress.h"
#include "core/io/store.h"
#include "core/repair/plan_types.h"

namespace shw {

// True where nothing is lost; an error where what was written is not what was planned.
Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const Checkpoint& result,
                          WritableDirectory& folder, Progress* progress);

}  // namespace shw
