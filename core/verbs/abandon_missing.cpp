#include "core/verbs/abandon_missing.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/facts/states/optimizer_states.h"
#include "core/facts/storage/missing_data.h"
#include "core/io/store.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/tensor/cast.h"

namespace shw::verbs {
namespace {

using Gone = std::map<TensorId, std::vector<Box>>;

Gone gone_tiles_of(const Checkpoint& c) {
  Gone gone;
  for (TensorId tensor : c.tensors()) {
    for (ChunkId chunk : c.chunks(tensor)) {
      if (!is_in_missing_file(c, c.item(chunk)) || volume(c.sizes(chunk)) == 0) continue;
      gone[tensor].push_back(box_of(c, chunk));
    }
  }
  return gone;
}

std::vector<std::string> gone_entries_of(const Checkpoint& c) {
  std::vector<std::string> gone;
  for (const NonTensorEntry& object : c.objects()) {
    if (!object.inlined && is_in_missing_file(c, object.item)) gone.push_back(object.fqn);
  }
  return gone;
}

// What the other moments of its parameter lost, and it did not: Adam divides one by the root of the
// other, and a row of one alone does more harm than none.
Gone lost_by_other_moments(const Checkpoint& c, const Gone& gone, const Progress* progress) {
  std::map<std::string, std::vector<TensorId>> of_parameters;
  for (const OptimizerState& state : optimizer_states(c, progress)) {
    if (state.role != StateRole::kMoment) continue;
    std::string name(c.fqn(state.state));
    const std::size_t kind = name.rfind(state.kind);
    if (kind != name.npos) name.erase(kind, state.kind.size());
    of_parameters[name].push_back(state.state);
  }
  Gone more;
  for (const auto& [name, moments] : of_parameters) {
    for (TensorId moment : moments) {
      for (TensorId other : moments) {
        auto lost = gone.find(other);
        if (other == moment || lost == gone.end() || !same(c.shape(other), c.shape(moment)))
          continue;
        auto own = gone.find(moment);
        for (const Box& box : lost->second) {
          const bool too = own != gone.end() && std::find(own->second.begin(), own->second.end(),
                                                          box) != own->second.end();
          if (!too) more[moment].push_back(box);
        }
      }
    }
  }
  return more;
}

// Masters that the model can fill: the elements of its parameter are all there.
std::map<TensorId, TensorId> masters_of(const Checkpoint& c, const Gone& gone,
                                        const Progress* progress) {
  std::map<TensorId, TensorId> out;
  for (const OptimizerState& state : optimizer_states(c, progress)) {
    if (state.role == StateRole::kMaster && state.parameter && state.parameter_is_sure &&
        gone.contains(state.state) && !gone.contains(*state.parameter) &&
        same(c.shape(state.state), c.shape(*state.parameter)))
      out.emplace(state.state, *state.parameter);
  }
  return out;
}

// What each tensor is filled with.
struct Filling {
  const Checkpoint& checkpoint;
  const PlanOptions& options;
  std::string source;  // path of options.fill_source, whole
  std::map<TensorId, TensorId> masters;

  void from(TensorId tensor, FillStep& step) const {
    const std::string fqn(checkpoint.fqn(tensor));
    if (options.fill == FillChoice::kReference) {
      auto other = options.fill_source->find(fqn);
      if (other && same(options.fill_source->shape(*other), checkpoint.shape(tensor)) &&
          can_cast(options.fill_source->dtype(*other), checkpoint.dtype(tensor))) {
        step.from_checkpoint = source;
        return;
      }
    }
    auto master = masters.find(tensor);
    if (options.fill == FillChoice::kZero || master == masters.end()) return;
    step.from_checkpoint = checkpoint.directory()->name();
    step.from_tensor = checkpoint.fqn(master->second);
  }
};

void add_fills(const Filling& filling, const Gone& gone, const Gone& more, StepPlan& plan) {
  std::map<std::string, FillStep> alike;  // one step for all that are filled from one checkpoint
  for (const auto& [tensor, boxes] : gone) {
    FillStep step;
    step.gone = true;
    filling.from(tensor, step);
    const std::string fqn(filling.checkpoint.fqn(tensor));
    auto& one =
        alike.try_emplace(step.from_checkpoint + "\n" + step.from_tensor, step).first->second;
    one.tensors.push_back(fqn);
  }
  for (auto& [key, step] : alike) plan.steps.emplace_back(std::move(step));
  for (const auto& [tensor, boxes] : more) {
    FillStep step;
    step.tensors = {std::string(filling.checkpoint.fqn(tensor))};
    step.boxes = boxes;
    filling.from(tensor, step);
    plan.steps.emplace_back(std::move(step));
  }
}

}  // namespace

Result<std::optional<StepPlan>> plan_dropping_missing_data(const Opened& opened,
                                                           const std::string& fill,
                                                           Progress* progress) {
  const Checkpoint& c = *opened.checkpoint;
  if (fill.empty() || c.directory() == nullptr) return std::optional<StepPlan>();
  const Gone gone = gone_tiles_of(c);
  const std::vector<std::string> entries = gone_entries_of(c);
  if (gone.empty() && entries.empty()) return std::optional<StepPlan>();
  PlanOptions options;
  SHW_CHECK(choose_fill(fill, options, progress));
  StepPlan plan;
  plan.checkpoint = c.directory()->name();
  plan.fingerprint = fingerprint(c);
  Filling filling{c, options, {}, {}};
  if (options.fill_source != nullptr) {
    SHW_TRY(filling.source, posix_store().resolved(options.fill_source->directory()->name()));
    plan.inputs.push_back({filling.source, fingerprint(*options.fill_source)});
  }
  if (options.fill != FillChoice::kZero) filling.masters = masters_of(c, gone, progress);
  add_fills(filling, gone, lost_by_other_moments(c, gone, progress), plan);
  if (!entries.empty()) plan.steps.emplace_back(DropStep{entries});
  resolve_missing(c, plan.steps);
  return std::optional<StepPlan>(std::move(plan));
}

}  // namespace shw::verbs
