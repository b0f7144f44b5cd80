// What an optimizer saves beside its states: parameter groups, their hyper-parameters, and steps.
//
//   optimizer.param_groups                  one list of dicts (torch up to 2.3)
//   optimizer.param_groups.0.betas          one entry a value
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

// A step as one entry of the checkpoint holds it.
struct SavedStep {
  std::string fqn;                    // of the entry; of the whole list where it is inside one
  std::optional<TensorId> tensor;     // where the entry is a tensor
  std::optional<std::size_t> object;  // where the entry is an object and holds nothing else
  std::optional<double> step;         // nothing: None
};

struct ParamGroup {
  std::string name;                 // "0", or the parameter's name
  std::vector<std::string> params;  // bare names, or indices
  bool lists_params = false;
  std::map<std::string, PlainValue> values;  // lr, betas, eps, weight_decay, ...
  std::optional<SavedStep> step;
};

struct SavedOptimizer {
  std::string prefix;                           // "optimizer."
  std::vector<ParamGroup> groups;               // in their order
  std::map<std::string, SavedStep> steps;       // by the key of the parameter
  bool by_parameter = false;                    // flattened: every group is one parameter
  std::set<std::string> keys;                   // of parameters that have states
  std::map<std::string, std::size_t> group_of;  // by parameter; the first that lists it
  // Flattened: parameters that have settings (a learning rate among them) and no states.
  std::vector<std::string> without_states = {};
};

struct OptimizerSettings {
  std::vector<SavedOptimizer> optimizers;
  std::int64_t left_out = 0;  // entries that could not be read or are too large
};

// Entries up to 16 MiB, 256 MiB of them; nothing where no bytes can be read.
OptimizerSettings read_optimizer_settings(const Checkpoint& checkpoint,
                                          const Progress* progress = nullptr);

// "optimizer." of "optimizer.state.0.exp_avg"; nothing where the FQN is no state.
std::optional<std::string> optimizer_prefix(std::string_view fqn);

struct Betas {
  double first = 0, second = 0;
};
// Of the group that holds the parameter with that key.
std::optional<Betas> betas_of(const SavedOptimizer& optimizer, std::string_view key);
std::optional<Betas> betas_of(const ParamGroup& group);
// The group has what torch's own Adam and AdamW, or NVIDIA's fused ones, write into it, and nothing
// that is not known from them or from a trainer around them. Names of states say less: AdaBelief,
// ADOPT and LaProp are kept under Adam's.
bool is_adams(const SavedOptimizer& optimizer, std::string_view key);
const SavedOptimizer* find_optimizer(const OptimizerSettings& settings, std::string_view prefix);

}  // namespace shw
