// Compares tensors of stacked experts with the hidden size in config.json.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/model_config.h"

namespace shw {

// Stacks of experts ("experts.gate_up_proj", "experts.down_proj") that have the expected size with
// their last two axes swapped. Empty if the two are equal, or if a norm of the same layer
// contradicts config.json.
std::vector<ExchangedAxes> exchanged_experts(const Checkpoint& checkpoint,
                                             const ModelConfig& config, Progress* progress);

}  // namespace shw
