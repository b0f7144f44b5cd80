#include "core/session/snapshot.h"

namespace shw {

Snapshot blank(const Snapshot& before) {
  Snapshot snapshot;
  snapshot.revision = before.revision;
  snapshot.recent = before.recent;
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

bool is_repaired_elsewhere(const Snapshot& snapshot) {
  if (snapshot.repaired == nullptr || snapshot.checkpoint == nullptr) return false;
  const std::string& output = snapshot.repaired->output;
  const auto& directory = snapshot.checkpoint->directory();
  return output != snapshot.options.checkpoint &&
         (directory == nullptr || output != directory->name());
}

bool is_rewrite_only_plan(const Snapshot& snapshot) {
  return snapshot.plan != nullptr && snapshot.plan->transforms() && !snapshot.plan->repairs() &&
         snapshot.options.fill.empty();
}

verbs::Opened verb_inputs(const Snapshot& snapshot) {
  verbs::Opened opened{snapshot.checkpoint, snapshot.spec, snapshot.reference, snapshot.mesh};
  opened.is_against_itself = snapshot.is_against_itself;
  return opened;
}

}  // namespace shw
