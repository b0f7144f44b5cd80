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

using MissingChunks = std::map<TensorId, std::vector<Box>>;

MissingChunks missing_chunks_of(const Checkpoint& c) {
  MissingChunks missing;
  for (TensorId tensor : c.tensors()) {
    for (ChunkId chunk : c.chunks(tensor)) {
      if (!is_in_missing_file(c, c.item(chunk)) || volume(c.sizes(chunk)) == 0) continue;
      missing[tensor].push_back(box_of(c, chunk));
    }
  }
  return missing;
}

std::vector<std::string> missing_entries_of(const Checkpoint& c) {
  std::vector<std::string> missing;
  for (const NonTensorEntry& object : c.objects()) {
    if (!object.inlined && is_in_missing_file(c, object.item)) missing.push_back(object.fqn);
  }
  return missing;
}

// Chunks to drop because another moment of the parameter lost the same elements: Adam divides one
// moment by the root of the other, so rows of only one moment would do harm.
MissingChunks chunks_lost_in_sibling_moments(const Checkpoint& c, const MissingChunks& missing,
                                             const Progress* progress) {
  std::map<std::string, std::vector<TensorId>> of_parameters;
  for (const OptimizerState& state : optimizer_states(c, progress)) {
    if (state.role != StateRole::kMoment) continue;
    std::string name(c.fqn(state.state));
    const std::size_t kind = name.rfind(state.kind);
    if (kind != name.npos) name.erase(kind, state.kind.size());
    of_parameters[name].push_back(state.state);
  }
  MissingChunks more;
  for (const auto& [name, moments] : of_parameters) {
    for (TensorId moment : moments) {
      for (TensorId other : moments) {
        auto lost = missing.find(other);
        if (other == moment || lost == missing.end() || !same(c.shape(other), c.shape(moment)))
          continue;
        auto own = missing.find(moment);
        for (const Box& box : lost->second) {
          const bool too = own != missing.end() && std::find(own->second.begin(), own->second.end(),
                                                             box) != own->second.end();
          if (!too) more[moment].push_back(box);
        }
      }
    }
  }
  return more;
}

// Masters that can be filled from the model: all elements of their parameters exist.
std::map<TensorId, TensorId> masters_refillable_from_model(const Checkpoint& c,
                                                           const MissingChunks& missing,
                                                           const Progress* progress) {
  std::map<TensorId, TensorId> out;
  for (const OptimizerState& state : optimizer_states(c, progress)) {
    if (state.role == StateRole::kMaster && state.parameter && state.is_parameter_certain &&
        missing.contains(state.state) && !missing.contains(*state.parameter) &&
        same(c.shape(state.state), c.shape(*state.parameter)))
      out.emplace(state.state, *state.parameter);
  }
  return out;
}

// The fill values and their sources.
struct Filling {
  const Checkpoint& checkpoint;
  const PlanOptions& options;
  std::string source;  // absolute path of options.fill_source
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

void add_fill_steps(const Filling& filling, const MissingChunks& missing, const MissingChunks& more,
                    Plan& plan) {
  // Shared by all tensors that are filled from one checkpoint.
  std::map<std::string, FillStep> alike;
  for (const auto& [tensor, boxes] : missing) {
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

Result<std::optional<Plan>> plan_dropping_missing_data(const Opened& opened,
                                                       const std::string& fill,
                                                       Progress* progress) {
  const Checkpoint& c = *opened.checkpoint;
  if (fill.empty() || c.directory() == nullptr) return std::optional<Plan>();
  const MissingChunks missing = missing_chunks_of(c);
  const std::vector<std::string> entries = missing_entries_of(c);
  if (missing.empty() && entries.empty()) return std::optional<Plan>();
  PlanOptions options;
  SHW_CHECK(choose_fill(fill, options, progress));
  Plan plan;
  plan.checkpoint = c.directory()->name();
  plan.fingerprint = fingerprint(c);
  Filling filling{c, options, {}, {}};
  if (options.fill_source != nullptr) {
    SHW_TRY(filling.source, posix_store().resolved(options.fill_source->directory()->name()));
    plan.inputs.push_back({filling.source, fingerprint(*options.fill_source)});
  }
  if (options.fill != FillChoice::kZero)
    filling.masters = masters_refillable_from_model(c, missing, progress);
  add_fill_steps(filling, missing, chunks_lost_in_sibling_moments(c, missing, progress), plan);
  if (!entries.empty()) plan.steps.emplace_back(DropStep{entries});
  resolve_missing(c, plan.steps);
  return std::optional<Plan>(std::move(plan));
}

}  // namespace shw::verbs
