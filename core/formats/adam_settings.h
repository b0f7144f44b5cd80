// Settings of an AdamW optimizer that are the same for all parameters, from the places where
// trainers save them:
//
//   optimizer.state.<fqn>.step            a tensor of one number for each parameter
//   optimizer.param_groups.<fqn>.betas    eps, lr, weight_decay: flattened by parameter
//   optimizer.param_groups                one list of dicts, "step" among them or not
//   common.pt, or the entry common_state  Megatron: {"optimizer": {"param_groups": [...]}}, and
//                                         torch's Adam in it: {"state": {"common_step": N}, ...}
#pragma once

#include <optional>

#include "core/model/checkpoint.h"

namespace shw {

struct AdamSettings {
  double step = 0, lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
};

// Those of the first group whose weights decay, or of the first one. nullopt if one of them is
// missing or not finite, if parameters have seen different numbers of steps, or if the updates are
// not AdamW's (amsgrad, maximize, weight decay in the gradient). Reads one number per parameter.
std::optional<AdamSettings> adam_settings(const Checkpoint& source);

}  // namespace shw
