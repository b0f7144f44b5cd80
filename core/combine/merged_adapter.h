// A base model with the LoRA matrices of a PEFT adapter added to its weights: the result of PEFT's
// merge_and_unload(), computed in float32 and rounded once to the dtype of each weight.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// Tensors that the adapter saved whole (modules_to_save, trained biases) replace those of the base.
// kUnsupported, with the tensor, if a part of the adapter has no place or an unknown meaning:
// nothing is dropped silently. kUsage if `adapter` is not an adapter.
Result<std::shared_ptr<const Checkpoint>> merge_adapter(std::shared_ptr<const Checkpoint> base,
                                                        std::shared_ptr<const Checkpoint> adapter,
                                                        Progress* progress);

}  // namespace shw
