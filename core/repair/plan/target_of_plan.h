// Turns a plan on its checkpoint into a target: repairs, then steps, as the origin of every element
// of the result, and the output format. Both a run and a later proof of its result use this target.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/repair/plan/plan_types.h"
#include "core/transform/lower.h"

namespace shw {

struct TargetOfPlan {
  TargetState all;
  ResultFormat form;             // `out` is not set
  std::vector<Step> steps = {};  // as applied: with resolved options
};
// Opens the inputs that the plan reads from. kUsage if one has changed since the plan was made.
Result<TargetOfPlan> target_of_plan(const std::shared_ptr<const Checkpoint>& checkpoint,
                                    const Plan& plan, Progress* progress);

// Applies the plan's repairs to the target (target_of_repair.cpp). If `keeps_files`
// (ResultFormat::keeps_files) is false, items that stay become parts like all others, so that steps
// can move them.
Status apply_repair(const Plan& plan, bool keeps_files, TargetState& all);

// Format of this name in formats(), or of the program that loads it ("torch_dist"); null if there
// is none.
const Format* format_named(std::string_view name);
// The name of the program that loads the format, where the two differ: "torch_dist" for
// "megatron-dist". Otherwise `name`.
std::string_view format_alias(std::string_view name);
// Writable format of this name; the kUsage error lists those that exist.
Result<const Format*> format_to_write(const std::string& name);
// Makes the plan write this format, in files of at most `shard_bytes`; 0 splits like Hugging Face's
// libraries, in formats that store every tensor whole.
Status set_output_format(const std::string& format, std::uint64_t shard_bytes, Plan& plan);

}  // namespace shw
