// A plan some of whose steps a person does not want: planned anew without them, so that what stays
// wrong is said, and proved like any plan that a person has edited.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/repair/plan/plan_types.h"
#include "core/rules/check.h"

namespace shw {

// By operation of a plan: whether it is left out.
using StepsOff = std::vector<bool>;

// By operation the first one that it cannot part from: masking, filling and putting back the same
// tensors is one thing.
std::vector<std::size_t> steps_together(const Plan& plan);
// One step, and all that go with it, on or off. kUsage where that cannot be: `.metadata` is written
// anew by every repair.
Result<StepsOff> switch_step(const Plan& plan, StepsOff off, std::size_t step, bool on);

// `report`: what the plan was made of; null where that is not known (a plan from a file): then a
// step that is off is told by its own words. kUnsupported where the rest needs what is off.
Result<Plan> plan_without(const Checkpoint& checkpoint, const CheckReport* report, const Plan& plan,
                          const StepsOff& off);

}  // namespace shw
