// The state dict of one torch optimizer, whose entries have no paths yet:
//
//   state.INDEX.KIND             a tensor: state.0.exp_avg
//   param_groups.GROUP.SETTING   a value: param_groups.0.lr, param_groups.0.params
//
// torch.optim expects {"state": {0: {"exp_avg": ...}}, "param_groups": [{"lr": ..., ...}]}.
#pragma once

#include "core/formats/format_writer.h"

namespace shw {

// The name under which transformers' Trainer looks for an optimizer.
inline constexpr const char* kTrainerOptimizerFile = "optimizer.pt";

// True if all entries have such names and no nested paths, and there is one of each kind at least.
bool is_optimizer_state_dict(const Outputs& outputs);
// The same entries at their paths.
Outputs nested_as_optimizer(Outputs outputs);

}  // namespace shw
