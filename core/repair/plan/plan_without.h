// Removes steps that the user does not want from a plan: it is planned again without them, reports
// what stays wrong, and is proved like an edited plan.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/repair/plan/plan_types.h"
#include "core/rules/check.h"

namespace shw {

// One flag per operation of a plan: true if the user switched it off.
using DisabledSteps = std::vector<bool>;

// By operation: the first operation that it cannot be separated from. Masking, filling and
// restoring the same tensors belong together.
std::vector<std::size_t> inseparable_steps(const Plan& plan);
// Switches a step, and all that depend on it, on or off. kUsage if impossible: every repair
// rewrites `.metadata`.
Result<DisabledSteps> switch_step(const Plan& plan, DisabledSteps off, std::size_t step, bool on);

// `report` is what the plan was made from; null for a plan from a file, where a step that is off is
// described by its own text. kUnsupported if the rest needs a step that is off.
Result<Plan> plan_without_steps(const Checkpoint& checkpoint, const CheckReport* report,
                                const Plan& plan, const DisabledSteps& off);

}  // namespace shw
