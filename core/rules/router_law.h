// What a router says about the experts beside it, where no spec does (spec/failures.md 5.c).
#pragma once

#include <vector>

#include "core/rules/check.h"

namespace shw {

// A router of E rows chooses among E experts. Keys that count the experts of one rank stack those
// of all ranks, so keys x stacked experts must be E; a divisor of E says that an axis was left out
// at save. A warning: only a spec says how the rest belongs together.
void add_experts_missing_by_router(const RuleInput& input, std::vector<Finding>& findings);

}  // namespace shw
