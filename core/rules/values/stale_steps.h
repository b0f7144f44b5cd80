// A data file from another step of the run: boxes and checksums are valid, and only the step
// counters in it tell.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/moment_pairs.h"

namespace shw {

// Reports a file whose optimizer step differs from the step in all other files. `pairs`: the
// moments of all optimizers in the checkpoint.
void report_stale_steps(const Facts& facts, const SavedOptimizer& optimizer,
                        const std::vector<MomentPair>& pairs, std::vector<Finding>& findings);

}  // namespace shw
