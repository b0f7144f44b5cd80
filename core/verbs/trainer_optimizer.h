// `convert --to optimizer`: the states of a checkpoint's optimizer as one optimizer.pt, from which
// transformers' Trainer resumes next to the weights that `convert --to hf` writes.
#pragma once

#include "core/verbs/convert_plan.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// Names of other programs go through a map to those of Hugging Face. The order of the parameters is
// that of --order, of the groups that the checkpoint names, or of its state dict. kUsage if none of
// them is known: a number that is guessed would give a parameter the states of another one.
Result<ConvertPlan> plan_trainer_optimizer(const Opened& opened, const VerbOptions& said,
                                           const MapOptions& mapping, Progress* progress);

}  // namespace shw::verbs
