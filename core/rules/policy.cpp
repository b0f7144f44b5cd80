#include "core/rules/policy.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/cancellable_range.h"
#include "core/base/words.h"
#include "core/facts/states/optimizer_states.h"
#include "core/facts/storage/missing_data.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/formats/plain_value.h"
#include "core/model/index_only_tensors.h"
#include "core/rules/rules.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

PolicyAnswer policy_answer(std::string_view require, PolicyVerdict verdict, std::string why) {
  return {std::string(require), verdict, std::move(why), {}};
}

// "3 tensors with NaN": the subjects that break the policy or leave it undecided.
PolicyAnswer policy_answer(std::string_view require, PolicyVerdict verdict, std::string_view noun,
                           std::string_view what, std::vector<std::string> subjects) {
  std::string why = plural(subjects.size(), noun) + std::string(what);
  return {std::string(require), verdict, std::move(why), std::move(subjects)};
}

// Unread files turn "met" into "undecided".
std::optional<PolicyAnswer> undecided_by_unread_files(const Checkpoint& checkpoint,
                                                      std::string_view require) {
  if (checkpoint.directory() == nullptr)
    return policy_answer(require, PolicyVerdict::kUndecided,
                         "the folder with the data files is missing, so they were not checked");
  if (unopened(checkpoint).empty()) return std::nullopt;
  return policy_answer(require, PolicyVerdict::kUndecided, "file or record",
                       " that could not be read: their contents are unknown",
                       unreadable_subjects(checkpoint));
}

PolicyAnswer evaluate_coverage(const Checkpoint& checkpoint, const Progress* progress) {
  constexpr std::string_view kName = "coverage";
  std::vector<std::string> broken;
  std::vector<TensorTiling> tilings = compute_tilings(checkpoint, progress);
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    bool exact = tilings[index_of(tensor)].tiling == Tiling::kExact;
    if (!exact || missing_chunk_count(checkpoint, tensor) != 0)
      broken.emplace_back(checkpoint.fqn(tensor));
  }
  for (const UnclaimedStorageRecord& unclaimed : index_only_tensors(checkpoint))
    broken.push_back(unclaimed.fqn);
  if (!broken.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "tensor",
                         " with elements in no chunk, in several, or in a missing file",
                         std::move(broken));
  if (auto open = undecided_by_unread_files(checkpoint, kName)) return std::move(*open);
  if (checkpoint.tensor_count() == 0)
    return policy_answer(kName, PolicyVerdict::kUndecided, "there are no tensors");
  return policy_answer(kName, PolicyVerdict::kMet,
                       "every element of " + plural(checkpoint.tensor_count(), "tensor") +
                           " is in one chunk whose bytes are there");
}

// Entries that are more than plain data were not examined: tensors in tuples, RNG states,
// unsupported kinds.
std::vector<std::string> non_plain_entries(const Checkpoint& checkpoint, const Progress* progress) {
  const auto objects = checkpoint.objects();
  std::vector<std::string> opaque;
  for (std::size_t i = 0; i < objects.size() && !is_cancelled(progress); ++i) {
    const auto& inlined = objects[i].inlined;
    const bool is_plain =
        inlined ? !inlined->opcodes.empty() : read_plain_opcodes(checkpoint, i).has_value();
    if (!is_plain) opaque.push_back(objects[i].fqn);
  }
  return opaque;
}

Result<PolicyAnswer> evaluate_finite(const Checkpoint& checkpoint, bool data, Progress* progress,
                                     Team* team) {
  constexpr std::string_view kName = "finite";
  if (!data) return policy_answer(kName, PolicyVerdict::kUndecided, "values were not read: --data");
  std::vector<TensorId> tensors;
  for (TensorId tensor : checkpoint.tensors()) tensors.push_back(tensor);
  SHW_TRY(auto told, statistics_of(checkpoint, tensors, progress, team));
  std::vector<std::string> broken, open;
  std::uint64_t elements = 0;
  for (const TensorStatistics& tensor : told) {
    bool can_be = tensor.statistics.kind == NumberKind::kOpaque;
    elements += tensor.statistics.elements;
    if (tensor.statistics.nan + tensor.statistics.infinite != 0)
      broken.push_back(tensor.fqn);
    else if (!tensor.is_whole() || can_be)
      open.push_back(tensor.fqn);
  }
  for (const UnclaimedStorageRecord& unclaimed : index_only_tensors(checkpoint))
    open.push_back(unclaimed.fqn);
  std::vector<std::string> opaque = non_plain_entries(checkpoint, progress);
  if (!broken.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "tensor", " with NaN or infinities",
                         std::move(broken));
  if (!open.empty())
    return policy_answer(kName, PolicyVerdict::kUndecided, "tensor",
                         " that cannot be fully read or is not stored as plain numbers",
                         std::move(open));
  if (!opaque.empty())
    return policy_answer(kName, PolicyVerdict::kUndecided, "object",
                         " in whose contents there may be tensors", std::move(opaque));
  if (auto unread = undecided_by_unread_files(checkpoint, kName)) return std::move(*unread);
  if (elements == 0) return policy_answer(kName, PolicyVerdict::kUndecided, "there are no values");
  return policy_answer(kName, PolicyVerdict::kMet,
                       "no NaN and no infinity in " + plural(told.size(), "tensor"));
}

// Optimizer states by parameter, with normalised names.
struct StatesByParameter {
  std::map<std::string, std::set<std::string>> kinds;  // by parameter key
  std::set<TensorId> parameters;                       // with at least one state
  std::vector<std::string> gone;                       // recorded states whose data is missing
  bool all_placed = true;                              // the parameter of every state is known
};

bool is_there(const Checkpoint& checkpoint, TensorId tensor) {
  return missing_chunk_count(checkpoint, tensor) == 0 &&
         compute_tiling(checkpoint, tensor).tiling == Tiling::kExact;
}

StatesByParameter states_by_parameter(const Checkpoint& checkpoint, const Progress* progress) {
  StatesByParameter seen;
  std::vector<OptimizerState> states = optimizer_states(checkpoint, progress);
  for (const OptimizerState& state : cancellable_range(states, progress)) {
    seen.kinds[state.key].insert(state.kind);
    if (state.parameter) seen.parameters.insert(*state.parameter);
    seen.all_placed = seen.all_placed && state.parameter;
    if (!is_there(checkpoint, state.state)) seen.gone.emplace_back(checkpoint.fqn(state.state));
  }
  // A state stored as an object counts as present; its contents are not examined.
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (auto path = parse_state_fqn(object.fqn))
      seen.kinds[std::string(path->key)].insert(std::string(path->kind));
  }
  for (const UnclaimedStorageRecord& unclaimed : index_only_tensors(checkpoint)) {
    if (parse_state_fqn(unclaimed.fqn)) seen.gone.push_back(unclaimed.fqn);
  }
  return seen;
}

// Kinds of states with the number of parameters that have them. More than half:
// the optimizer keeps it for all. Fewer: another optimizer's, or the rest of a
// loss.
std::map<std::string, std::size_t> parameters_per_state_kind(const StatesByParameter& seen) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [key, kinds] : seen.kinds) {
    for (const std::string& kind : kinds) ++counts[kind];
  }
  return counts;
}

struct ParametersWithoutStates {
  std::vector<std::string> broken, open;
};

void add_parameters_lacking_states(const StatesByParameter& seen, ParametersWithoutStates& out) {
  const auto counts = parameters_per_state_kind(seen);
  for (const auto& [key, kinds] : seen.kinds) {
    bool lacks = false, lacks_common = false;
    for (const auto& [kind, count] : counts) {
      if (kinds.contains(kind)) continue;
      lacks = true;
      lacks_common = lacks_common || count * 2 > seen.kinds.size();
    }
    if (lacks) (lacks_common ? out.broken : out.open).push_back(key);
  }
}

// Only some formats record which tensors are trained; otherwise every float may be.
void add_stateless(const Checkpoint& checkpoint, const StatesByParameter& seen,
                   ParametersWithoutStates& out) {
  bool says_trained = false;
  std::vector<TensorId> stateless;
  for (TensorId tensor : checkpoint.tensors()) {
    if (parse_state_fqn(checkpoint.fqn(tensor))) continue;
    says_trained = says_trained || checkpoint.requires_grad(tensor);
    if (!seen.parameters.contains(tensor)) stateless.push_back(tensor);
  }
  for (TensorId tensor : stateless) {
    if (says_trained && !checkpoint.requires_grad(tensor)) continue;
    if (!says_trained && number_kind(checkpoint.dtype(tensor)) == NumberKind::kInteger) continue;
    bool is_sure = says_trained && seen.all_placed;
    (is_sure ? out.broken : out.open).emplace_back(checkpoint.fqn(tensor));
  }
}

PolicyAnswer evaluate_optimizer(const Checkpoint& checkpoint, const Progress* progress) {
  constexpr std::string_view kName = "optimizer-complete";
  StatesByParameter seen = states_by_parameter(checkpoint, progress);
  auto unread = undecided_by_unread_files(checkpoint, kName);
  if (seen.kinds.empty() && seen.gone.empty()) {
    if (unread) return std::move(*unread);
    return policy_answer(kName, PolicyVerdict::kBroken, "there are no optimizer states");
  }
  ParametersWithoutStates lacking;
  add_parameters_lacking_states(seen, lacking);
  add_stateless(checkpoint, seen, lacking);
  if (!seen.gone.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "state",
                         " with elements in no chunk, in several, or in a missing file",
                         std::move(seen.gone));
  // Missing states may be in unreadable files.
  if (unread) return std::move(*unread);
  if (!lacking.broken.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "parameter",
                         " without all of the states that the optimizer keeps",
                         std::move(lacking.broken));
  if (!lacking.open.empty())
    return policy_answer(kName, PolicyVerdict::kUndecided, "tensor",
                         " without optimizer states that others have: the checkpoint does not say "
                         "which parameters are trained, and by which optimizer",
                         std::move(lacking.open));
  return policy_answer(
      kName, PolicyVerdict::kMet,
      plural(seen.kinds.size(), "parameter") + " with all states of the optimizer");
}

}  // namespace

std::string_view name(PolicyVerdict verdict) {
  if (verdict == PolicyVerdict::kMet) return "met";
  return verdict == PolicyVerdict::kBroken ? "broken" : "undecided";
}

Result<std::vector<PolicyAnswer>> evaluate_policies(const Checkpoint& checkpoint,
                                                    std::span<const std::string> required,
                                                    bool data, Progress* progress, Team* team) {
  std::vector<PolicyAnswer> answers;
  for (const std::string& require : required) {
    if (require == kPolicies[0]) answers.push_back(evaluate_coverage(checkpoint, progress));
    if (require == kPolicies[1]) {
      SHW_TRY(PolicyAnswer finite, evaluate_finite(checkpoint, data, progress, team));
      answers.push_back(std::move(finite));
    }
    if (require == kPolicies[2]) answers.push_back(evaluate_optimizer(checkpoint, progress));
    if (is_cancelled(progress)) return cancelled_error();
  }
  return answers;
}

}  // namespace shw
