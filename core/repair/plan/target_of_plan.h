// A plan of steps on the checkpoint that it is for: where every element goes, and in which form it
// is written. Who makes a result and who proves one later come by it in the same way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/transform/lower.h"
#include "core/transform/steps_json.h"

namespace shw {

struct TargetOfPlan {
  TargetState all;
  WantedForm form;               // without `out`
  std::vector<Step> steps = {};  // as they were taken: settled
};
// Opens what the plan takes from others. kUsage where one is not what the plan was made for.
Result<TargetOfPlan> target_of_plan(const std::shared_ptr<const Checkpoint>& checkpoint,
                                    const StepPlan& plan, Progress* progress);

// By its name in formats(); null where there is none.
const Format* format_named(const std::string& name);

}  // namespace shw
