// A plan on the checkpoint that it is for: what findings ask for and then its steps, as where every
// element of the result comes from, and in which form it is written. A run that makes a result and
// a proof of it later both come by their target here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/repair/plan/plan_types.h"
#include "core/transform/lower.h"

namespace shw {

struct TargetOfPlan {
  TargetState all;
  WantedForm form;               // without `out`
  std::vector<Step> steps = {};  // as they were taken: settled
};
// Opens what the plan takes from others. kUsage where one is not what the plan was made for.
Result<TargetOfPlan> target_of_plan(const std::shared_ptr<const Checkpoint>& checkpoint,
                                    const Plan& plan, Progress* progress);

// What the findings of a plan ask for, put in the place of what was saved (target_of_repair.cpp).
Status apply_repair(const Plan& plan, TargetState& all);

// By its name in formats(); null where there is none.
const Format* format_named(const std::string& name);

}  // namespace shw
