// Experts that are stacked in one tensor, beside the hidden size that config.json says.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/facts/reference/config_look.h"
#include "core/facts/reference/model_config.h"

namespace shw {

// Stacks of experts ("experts.gate_up_proj", "experts.down_proj") that are as large as they should
// be with their last two axes exchanged. Nothing where the two are equal, and nothing where a norm
// of the same layer has another size than config.json says.
std::vector<ExchangedAxes> exchanged_experts(const Checkpoint& checkpoint,
                                             const ModelConfig& config, Progress* progress);

}  // namespace shw
