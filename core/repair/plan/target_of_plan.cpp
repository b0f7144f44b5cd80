#include "core/repair/plan/target_of_plan.h"

#include <fmt/core.h>

#include "core/formats/open.h"
#include "core/formats/table.h"
#include "core/repair/plan/plan_fingerprint.h"

namespace shw {
namespace {

// What the plan asks for, else what was opened; of that which is only read, torch's own.
Result<const Format*> format_of(const Checkpoint& checkpoint, const StepPlan& plan) {
  const Format& now = checkpoint.format();
  const Format* format = plan.format.empty() ? &now : format_named(plan.format);
  if (plan.format.empty() && now.writer == nullptr) format = format_named("dcp");
  if (format != nullptr && format->writer != nullptr) return format;
  return fail(ErrorKind::kUsage, "there is no format \"" + plan.format + "\" that can be written",
              {}, "formats that are written: dcp, safetensors, torch");
}

Status check_is_planned_for(const Checkpoint& checkpoint, const std::string& expected,
                            const std::string& path) {
  if (expected.empty() || fingerprint(checkpoint) == expected) return {};
  return fail(ErrorKind::kUsage,
              "the plan was made for another checkpoint, or for another state "
              "of this one",
              {path}, "make a new plan");
}

}  // namespace

const Format* format_named(const std::string& name) {
  for (const FormatRow& row : formats()) {
    if (row.format->name == name) return row.format;
  }
  return nullptr;
}

namespace {

tl::unexpected<Error> of_input(const StepPlan::Input& input, Error error) {
  if (!input.original_path.empty())
    error.advice +=
        fmt::format("{}the plan names it {}, which begins at the folder of the plan's file",
                    error.advice.empty() ? "" : "; ", input.original_path);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

Result<TargetOfPlan> target_of_plan(const std::shared_ptr<const Checkpoint>& checkpoint,
                                    const StepPlan& plan, Progress* progress) {
  SHW_CHECK(check_is_planned_for(*checkpoint, plan.fingerprint, plan.checkpoint));
  TargetOfPlan arranged{target_state_of(checkpoint), {}, plan.steps};
  resolve_missing(*checkpoint, arranged.steps);
  for (const StepPlan::Input& input : plan.inputs) {
    auto opened = open_to_compare(input.checkpoint, progress);
    if (!opened) return of_input(input, std::move(opened).error());
    auto other = std::move(*opened);
    SHW_CHECK(check_is_planned_for(*other, input.fingerprint, input.checkpoint));
    arranged.all.inputs.push_back(std::move(other));
  }
  SHW_TRY(arranged.all, apply_steps(std::move(arranged.all), arranged.steps, progress));
  SHW_TRY(arranged.form.format, format_of(*checkpoint, plan));
  arranged.form.shard_bytes = plan.shard_bytes;
  return arranged;
}

}  // namespace shw
