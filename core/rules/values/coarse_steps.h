// Step counters in a dtype that cannot hold every count: bfloat16 beyond 256, float16 beyond 2,048.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/optimizer_settings.h"

namespace shw {

void report_coarse_steps(const Facts& facts, const SavedOptimizer& optimizer,
                         std::vector<Finding>& findings);

}  // namespace shw
