// A data file from another step of the run: boxes and checksums are valid, and only the step
// counters in it tell.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/moment_pairs.h"

namespace shw {

// `pairs`: of all optimizers.
void report_stale_steps(const Facts& facts, const SavedOptimizer& optimizer,
                        const std::vector<MomentPair>& pairs, std::vector<Finding>& findings);

}  // namespace shw
