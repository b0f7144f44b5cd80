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
// `keeps_files`: WantedForm::keeps_files; else items that stay are parts as all else, which steps
// can move.
Status apply_repair(const Plan& plan, bool keeps_files, TargetState& all);

// By its name in formats(); null where there is none.
const Format* format_named(const std::string& name);
// The same of one that can be written; kUsage names those that can.
Result<const Format*> format_to_write(const std::string& name);
// The plan's result is written in this format, in files of `shard_bytes` at most; 0: as Hugging
// Face's libraries cut them, where the format holds every tensor in one piece.
Status write_as(const std::string& format, std::uint64_t shard_bytes, Plan& plan);

}  // namespace shw
