// The contents of an optimizer besides its states: parameter groups with hyper-parameters, and
// steps.
//
//   optimizer.param_groups                  one list of dicts (torch up to 2.3)
//   optimizer.param_groups.0.betas          one entry per value
//   optim.param_groups.<fqn>.betas          flattened by parameter
//   optimizer.param_to_group_meta.<fqn>.lr  Megatron-FSDP
//   optimizer.state.<key>.step              a tensor of one number, or an object
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/check_input.h"
#include "core/formats/plain_value.h"
#include "core/model/state_names.h"

namespace shw {

// The step counter in one entry of the checkpoint.
struct SavedStep {
  std::string fqn;                    // FQN of the entry, or of the list that contains it
  std::optional<TensorId> tensor;     // set if the entry is a tensor
  std::optional<std::size_t> object;  // set if the entry is an object with nothing else
  std::optional<double> step;         // nullopt: None
};

struct ParamGroup {
  std::string name;                 // "0", or the parameter's name
  std::vector<std::string> params;  // names without wrappers, or indices
  bool lists_params = false;
  std::map<std::string, PlainValue> values;  // lr, betas, eps, weight_decay, ...
  std::optional<SavedStep> step;
};

struct SavedOptimizer {
  std::string prefix;                           // "optimizer."
  std::vector<ParamGroup> groups;               // in recorded order
  std::map<std::string, SavedStep> steps;       // by parameter key
  bool by_parameter = false;                    // flattened: one group per parameter
  std::set<std::string> keys;                   // keys of parameters with states
  std::map<std::string, std::size_t> group_of;  // by parameter: the first group that lists it
  // Flattened: parameters with settings (a learning rate among them) but no states.
  std::vector<std::string> without_states = {};
};

struct OptimizerSettings {
  std::vector<SavedOptimizer> optimizers;
  std::int64_t left_out = 0;  // entries that could not be read or are too large
};

// Reads entries up to 16 MiB, 256 MiB in total; empty if the data cannot be read.
OptimizerSettings read_optimizer_settings(const Checkpoint& checkpoint,
                                          const Progress* progress = nullptr);

// "optimizer." of "optimizer.state.0.exp_avg"; nullopt if the FQN is not a state.
std::optional<std::string> optimizer_prefix(std::string_view fqn);

struct Betas {
  double first = 0, second = 0;
};
// The betas of the group that contains the parameter with this key.
std::optional<Betas> betas_of(const SavedOptimizer& optimizer, std::string_view key);
std::optional<Betas> betas_of(const ParamGroup& group);
// True if the group has the settings of torch's Adam and AdamW, or NVIDIA's fused ones, and
// no unknown others. State names are not sufficient: AdaBelief, ADOPT and LaProp use
// Adam's.
bool is_adams(const SavedOptimizer& optimizer, std::string_view key);
const SavedOptimizer* find_optimizer(const OptimizerSettings& settings, std::string_view prefix);

}  // namespace shw
