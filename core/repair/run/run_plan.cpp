#include "core/repair/run/run_plan.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/run/request.h"

namespace shw {
namespace {

bool is_cut(const RetileStep& step) {
  return step.tiles.size() > 1;
}

bool is_cut(const ReshardStep& step) {
  for (std::size_t axis = 0; axis < step.mesh.axes.size(); ++axis) {
    if (step.mesh.axes[axis].size > 1 && step.placements[axis].kind != Placement::Kind::kReplicate)
      return true;
  }
  return false;
}

// The tensors that a step splits; null if it splits none.
const Patterns* cut_by(const Step& step) {
  const auto* retile = std::get_if<RetileStep>(&step);
  if (retile != nullptr && is_cut(*retile)) return &retile->tensors;
  const auto* reshard = std::get_if<ReshardStep>(&step);
  return reshard != nullptr && is_cut(*reshard) ? &reshard->tensors : nullptr;
}

}  // namespace

std::vector<std::string> step_texts(const Plan& plan) {
  std::vector<std::string> words;
  for (const Step& step : plan.steps) words.push_back(to_text(step));
  if (!plan.format.empty()) words.push_back("written as " + plan.format);
  return words;
}

Status check_tiles_have_place(const Plan& plan, const Format& format) {
  if (!format.traits.has_one_piece_per_tensor) return {};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Patterns* tensors = cut_by(plan.steps[i]);
    if (tensors == nullptr) continue;
    return fail(
        ErrorKind::kUsage,
        fmt::format("step {} ({}): {} would be split into chunks, but {} stores every tensor whole",
                    plan.operations.size() + i + 1, name(plan.steps[i]), short_list_text(*tensors),
                    format.title),
        {}, "write it as DCP, as the verb reshard does: \"target\": {\"format\": \"dcp\"}");
  }
  return {};
}

Plan resolved_plan(const Plan& plan, const TargetOfPlan& target) {
  Plan resolved = plan;
  resolved.steps = target.steps;
  for (std::size_t i = 0; i < resolved.inputs.size(); ++i)
    resolved.inputs[i].fingerprint = fingerprint(*target.all.inputs[i + 1]);
  return resolved;
}

TargetRun target_run_of(const Plan& plan, const TargetOfPlan& target) {
  TargetRun run;
  run.form = target.form;
  run.operations = plan.operations;
  run.steps = step_texts(plan);
  run.weights_only = plan.weights_only;
  return run;
}

Result<RepairResult> run_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                              const ApplyOptions& options, Progress* progress) {
  // A pointer without ownership: the caller's checkpoint outlives it.
  const std::shared_ptr<const Checkpoint> source(std::shared_ptr<void>(), &checkpoint);
  SHW_TRY(const TargetOfPlan target, target_of_plan(source, plan, progress));
  SHW_CHECK(check_tiles_have_place(plan, *target.form.format));
  TargetRun run = target_run_of(plan, target);
  run.form.out = options.out;
  // Without steps nothing needs resolving, so a plan of millions of tiles is not copied.
  run.plan =
      encode_stored_plan(plan.transforms() ? plan_text(checkpoint, resolved_plan(plan, target), -1)
                                           : plan_text(checkpoint, plan, -1));
  run.memory = options.memory;
  run.device = options.device;
  run.partial = options.partial;
  run.team = options.team;
  run.integrity = options.integrity;
  const std::string& said =
      options.checkpoint.empty() ? checkpoint.directory()->name() : options.checkpoint;
  SHW_TRY(run.request, request_to_json(store, "repair", run.plan, said, options.integrity));
  return make_target(store, target.all, run, progress);
}

}  // namespace shw
