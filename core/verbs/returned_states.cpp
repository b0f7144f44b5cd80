#include "core/verbs/returned_states.h"

#include "core/model/state_names.h"

namespace shw::verbs {

StatesAfterRoundTrip::StatesAfterRoundTrip(const Checkpoint& back, const BoundMap& weights) {
  for (const TensorId tensor : back.tensors()) {
    if (auto key = key_of(back.fqn(tensor))) states_.try_emplace(std::move(*key), tensor);
  }
  for (const auto& [copy, of] : weights.omitted_copies)
    originals_.emplace(unwrapped_name(copy), unwrapped_name(of));
}

std::optional<StatesAfterRoundTrip::Key> StatesAfterRoundTrip::key_of(std::string_view fqn) {
  const auto path = parse_state_fqn(fqn);
  if (!path) return std::nullopt;
  const bool is_master = role_of_kind(path->kind) == StateRole::kMaster;
  return Key{unwrapped_name(path->key), is_master ? "master" : std::string(path->kind)};
}

std::optional<TensorId> StatesAfterRoundTrip::find(std::string_view fqn) const {
  auto key = key_of(fqn);
  if (!key) return std::nullopt;
  auto found = states_.find(*key);
  if (found == states_.end()) {
    const auto original = originals_.find(key->first);
    if (original != originals_.end()) found = states_.find({original->second, key->second});
  }
  return found == states_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace shw::verbs
