// A base model with the LoRA matrices of a PEFT adapter added to its weights: what PEFT's
// merge_and_unload() makes, computed in float32 and rounded once to the dtype of each weight.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// Weights that the adapter saved whole (modules_to_save, trained biases) take the place of the
// base's. kUnsupported, with the tensor, where something of the adapter has no place or its
// meaning is not known: nothing of it is left out in silence. kUsage where it is no adapter.
Result<std::shared_ptr<const Checkpoint>> merged_adapter(std::shared_ptr<const Checkpoint> base,
                                                         std::shared_ptr<const Checkpoint> adapter,
                                                         Progress* progress);

}  // namespace shw
