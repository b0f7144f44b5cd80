// Identifies optimizer states, their kind and parameter by structure, independent of one project's
// spelling (core/model/state_names.h lists spellings).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/state_names.h"

namespace shw {

struct OptimizerState {
  TensorId state{};
  std::optional<TensorId> parameter;  // nullopt if none fits
  bool is_parameter_certain = true;   // false: one of several tensors with equal shape and chunks
  StateRole role = StateRole::kOther;
  std::string kind;  // "exp_avg"
  std::string key;   // identifies the parameter: "layers.0.weight", "4"
};

std::vector<OptimizerState> optimizer_states(const Checkpoint& checkpoint,
                                             const Progress* progress = nullptr);

}  // namespace shw
