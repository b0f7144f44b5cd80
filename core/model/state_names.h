// The names of optimizer states and of the parameters that they belong to, as trainers spell them.
//
//   optimizer.state.<fqn>.exp_avg                        torch, TE by name; also without "state."
//   optim.state.<fqn>.exp_avg      NeMo AutoModel; of one of several optim.0.state., muon.state.
//   optimizer.state.<int>.exp_avg                        by index: aligned with the model by shapes
//   optimizer.state.module.module.module.<fqn>.exp_avg   Megatron-FSDP beside model.module.<fqn>
//   optimizer.state.exp_avg.<fqn>                        Megatron torch_dist; its master is "param"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

enum class StateRole : std::uint8_t {
  kMoment,  // of a pair: an element is worth keeping only where all of them are known
  kMaster,  // a copy of the parameter in more bits: the model can fill it
  kOther,
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

}  // namespace shw
