// Which number a parameter has in the optimizer of transformers' Trainer: it makes two groups, of
// the parameters that decay and of the others, each in the order of named_parameters(), and numbers
// them through. Files of weights seldom keep that order: safetensors sorts names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/maps/bound_map.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

using ParameterNames = std::vector<std::string>;

// Groups of an optimizer whose parameters a checkpoint names: an entry of names per group,
// "optimizer.param_groups.0.params", as torch.distributed.checkpoint has it.
struct NamedGroups {
  std::string prefix;                  // "optimizer.param_groups."
  std::vector<ParameterNames> groups;  // in order
};
// nullopt if there are none, or a group is missing or does not name its parameters.
std::optional<NamedGroups> named_groups(const Checkpoint& checkpoint);

// Parameters in the model's order.
struct ParameterOrder {
  std::vector<ParameterNames> groups;  // several: groups that were saved with the names
  bool are_groups = false;             // false: one list, which has to be grouped
  // True if the names are those of a state dict, with buffers and second names of tied weights.
  bool is_state_dict = false;
};
// From a text file with one name per line (.txt), or from a checkpoint that has named groups or
// whose format keeps the order of the state dict.
Result<ParameterOrder> read_parameter_order(const std::string& path, Progress* progress);
// The same for an opened checkpoint. kUsage if no order is known; the error says why.
Result<ParameterOrder> parameter_order_of(const Checkpoint& checkpoint);

// The two groups that Trainer makes of the parameters, which may be empty. kUsage if a name does
// not say whether it decays: Trainer asks modules of torch.nn.LayerNorm, whose names are free.
Result<std::vector<ParameterNames>> group_as_trainer(std::span<const MapTensor> parameters);

}  // namespace shw::verbs
