#include "core/session/snapshot.h"

namespace shw {
namespace {

bool is_rewrite_only(const Plan& plan, const std::string& fill) {
  return plan.transforms() && !plan.repairs() && fill.empty();
}

}  // namespace

Snapshot blank(const Snapshot& before) {
  Snapshot snapshot;
  snapshot.revision = before.revision;
  snapshot.recent = before.recent;
  snapshot.failure = before.failure;
  snapshot.run = before.run;
  snapshot.run_numbers = before.run_numbers;
  snapshot.explained = before.explained;
  snapshot.written = before.written;
  snapshot.saved_view = before.saved_view;
  snapshot.hashes = before.hashes;
  snapshot.saved_views = before.saved_views;
  snapshot.gpus = before.gpus;
  return snapshot;
}

const verbs::TileValues* tile_values_of(const Snapshot& snapshot, TensorId tensor) {
  if (snapshot.tile_values == nullptr) return nullptr;
  auto found = snapshot.tile_values->find(tensor);
  return found == snapshot.tile_values->end() ? nullptr : found->second.get();
}

const verbs::StoppedRun* first_stopped_run(const Snapshot& snapshot) {
  if (snapshot.stopped == nullptr || snapshot.stopped->runs.empty()) return nullptr;
  return &snapshot.stopped->runs.front();
}

bool is_repaired_elsewhere(const Snapshot& snapshot) {
  if (snapshot.repaired == nullptr || snapshot.checkpoint == nullptr) return false;
  const std::string& output = snapshot.repaired->output;
  const auto& directory = snapshot.checkpoint->directory();
  return output != snapshot.options.checkpoint &&
         (directory == nullptr || output != directory->name());
}

bool is_repaired_in_place(const Snapshot& snapshot) {
  return snapshot.repaired != nullptr && snapshot.checkpoint != nullptr &&
         !is_repaired_elsewhere(snapshot);
}

const Plan* executed_plan(const Snapshot& snapshot) {
  return snapshot.repaired != nullptr && snapshot.executed != nullptr
             ? snapshot.executed->plan.get()
             : nullptr;
}

bool is_plan_executed(const Snapshot& snapshot) {
  return snapshot.plan != nullptr && snapshot.plan.get() == executed_plan(snapshot);
}

bool is_rewrite_only_plan(const Snapshot& snapshot) {
  return snapshot.plan != nullptr && is_rewrite_only(*snapshot.plan, snapshot.options.fill);
}

bool is_rewrite_only_result(const Snapshot& snapshot) {
  const Plan* plan = executed_plan(snapshot);
  return plan != nullptr && is_rewrite_only(*plan, snapshot.executed->fill);
}

verbs::Opened verb_inputs(const Snapshot& snapshot) {
  verbs::Opened opened{snapshot.checkpoint, snapshot.spec, snapshot.reference, snapshot.mesh};
  opened.is_against_itself = snapshot.is_against_itself;
  return opened;
}

}  // namespace shw
