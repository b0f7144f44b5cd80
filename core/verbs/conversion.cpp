#include "core/verbs/conversion.h"

#include "core/model/state_names.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/trainer_folder.h"
#include "core/verbs/trainer_optimizer.h"

namespace shw::verbs {
namespace {

bool has_optimizer_states(const Checkpoint& checkpoint) {
  for (const TensorId tensor : checkpoint.tensors()) {
    if (parse_state_fqn(checkpoint.fqn(tensor))) return true;
  }
  return false;
}

// Says that Trainer's optimizer stays behind, which is a file of its own next to the weights.
void note_optimizer_file(const Checkpoint& checkpoint, const VerbOptions& said, ConvertPlan& made) {
  const auto file = trainer_optimizer_file(checkpoint);
  if (!file || said.weights_only || has_optimizer_states(checkpoint)) return;
  made.notes.push_back(*file +
                       " next to the weights is left out: to get its states by name, open "
                       "PATH/@optimizer=names.txt instead of PATH (docs/maps.md)");
}

}  // namespace

Result<ConvertPlan> plan_conversion(const Opened& opened, const VerbOptions& said,
                                    const MapOptions& mapping, Progress* progress) {
  if (said.to == kTrainerOptimizer) return plan_trainer_optimizer(opened, said, mapping, progress);
  if (!mapping.order.empty()) return fail(ErrorKind::kUsage, "--order is only for --to optimizer");
  SHW_TRY(ConvertPlan made, needs_map(said, mapping) ? plan_mapped(opened, said, mapping)
                                                     : plan_of_convert(opened, said, progress));
  note_optimizer_file(*opened.checkpoint, said, made);
  return made;
}

}  // namespace shw::verbs
