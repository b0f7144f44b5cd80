// Which tensors are optimizer states, of which kind, and of which parameter: from structure, not
// from one project's spelling.
//
//   optimizer.state.<fqn>.exp_avg                        torch, TE by name
//   optim.state.<fqn>.exp_avg                            NeMo AutoModel
//   optimizer.state.<int>.exp_avg                        by index: aligned with the model by shapes
//   optimizer.state.module.module.module.<fqn>.exp_avg   Megatron-FSDP beside model.module.<fqn>
//   optimizer.state.exp_avg.<fqn>                        Megatron torch_dist
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

enum class StateRole : std::uint8_t {
  kMoment,  // of a pair: an element is worth keeping only where all of them are known
  kMaster,  // a copy of the parameter in more bits: the model can fill it
  kOther,
};

struct OptimizerState {
  TensorId state{};
  std::optional<TensorId> parameter;  // nothing where none fits
  bool parameter_is_sure = true;  // false: one of several tensors with equal shape and equal chunks
  StateRole role = StateRole::kOther;
  std::string kind;  // "exp_avg"
  std::string key;   // what names the parameter: "layers.0.weight", "4"
};

struct StatePath {
  std::string_view key;
  std::string_view kind;
};
// Nothing where the FQN is no optimizer state.
std::optional<StatePath> parse_state_fqn(std::string_view fqn);
StateRole role_of_kind(std::string_view kind);
// Without wrappers (module, _orig_mod, ...): equal for a parameter and for what its states name.
std::string bare_name(std::string_view fqn);

std::vector<OptimizerState> optimizer_states(const Checkpoint& checkpoint);

}  // namespace shw
