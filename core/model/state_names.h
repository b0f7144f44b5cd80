// Splits FQNs of optimizer states into parameter name and kind, as the known trainers spell them.
//
//   optimizer.state.<fqn>.exp_avg                        torch, TE by name; also without "state."
//   optim.state.<fqn>.exp_avg      NeMo AutoModel; several optimizers: optim.0.state., muon.state.
//   optimizer.state.<int>.exp_avg                        by index: matched to the model by shapes
//   optimizer.state.module.module.module.<fqn>.exp_avg   Megatron-FSDP, model name
//   model.module.<fqn> optimizer.state.exp_avg.<fqn>                        Megatron torch_dist;
//   its master is "param"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

enum class StateRole : std::uint8_t {
  kMoment,  // one of a pair: an element is useful only if all moments of it are known
  kMaster,  // a copy of the parameter in higher precision, which the model can refill
  kOther,
};

struct StatePath {
  std::string_view key;
  std::string_view kind;
};
// nullopt if the FQN is not an optimizer state.
std::optional<StatePath> parse_state_fqn(std::string_view fqn);
StateRole role_of_kind(std::string_view kind);
// The name without wrappers (module, _orig_mod, ...), equal for a parameter and its states.
std::string unwrapped_name(std::string_view fqn);

}  // namespace shw
