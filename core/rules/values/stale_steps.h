// One data file of another step of the run: its tiles fit, its checksums hold, and only the steps
// that lie among them tell.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/moment_pairs.h"

namespace shw {

// `pairs`: of all optimizers.
void report_stale_steps(const Facts& facts, const SavedOptimizer& optimizer,
                        const std::vector<MomentPair>& pairs, std::vector<Finding>& findings);

}  // namespace shw
