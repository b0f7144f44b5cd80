#include "core/rules/policy.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/words.h"
#include "core/facts/gone.h"
#include "core/facts/optimizer_states.h"
#include "core/facts/tensor_statistics.h"
#include "core/model/named_only.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

PolicyAnswer policy_answer(std::string_view require, PolicyVerdict verdict, std::string why) {
  return {std::string(require), verdict, std::move(why), {}};
}

// "3 tensors with NaN": of those that break it, or leave it open.
PolicyAnswer policy_answer(std::string_view require, PolicyVerdict verdict, std::string_view noun,
                           std::string_view what, std::vector<std::string> subjects) {
  std::string why = plural(subjects.size(), noun) + std::string(what);
  return {std::string(require), verdict, std::move(why), std::move(subjects)};
}

PolicyAnswer judge_coverage(const Checkpoint& checkpoint) {
  std::vector<std::string> broken;
  std::vector<TensorTiling> tilings = judge_tilings(checkpoint);
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    if (tilings[t].tiling != Tiling::kExact || gone_tiles(checkpoint, TensorId{t}) != 0)
      broken.emplace_back(checkpoint.fqn(TensorId{t}));
  }
  for (const StrayRecord& stray : named_only(checkpoint)) broken.push_back(stray.fqn);
  if (!broken.empty())
    return policy_answer("coverage", PolicyVerdict::kBroken, "tensor",
                         " with elements in no tile, in several, or in a file that is gone",
                         std::move(broken));
  if (checkpoint.tensor_count() == 0)
    return policy_answer("coverage", PolicyVerdict::kUndecided, "there are no tensors");
  return policy_answer("coverage", PolicyVerdict::kMet,
                       "every element of " + plural(checkpoint.tensor_count(), "tensor") +
                           " lies in one tile whose bytes are there");
}

Result<PolicyAnswer> judge_finite(const Checkpoint& checkpoint, bool data, Progress* progress) {
  constexpr std::string_view kName = "finite";
  if (!data) return policy_answer(kName, PolicyVerdict::kUndecided, "values were not read: --data");
  std::vector<TensorId> tensors;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) tensors.push_back(TensorId{t});
  SHW_TRY(auto told, statistics_of(checkpoint, tensors, progress));
  std::vector<std::string> broken, open;
  for (const TensorStatistics& tensor : told) {
    bool can_be = tensor.statistics.kind == NumberKind::kOpaque;
    if (tensor.statistics.nan + tensor.statistics.infinite != 0)
      broken.push_back(tensor.fqn);
    else if (!tensor.is_whole() || can_be)
      open.push_back(tensor.fqn);
  }
  for (const StrayRecord& stray : named_only(checkpoint)) open.push_back(stray.fqn);
  if (!broken.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "tensor", " with NaN or infinities",
                         std::move(broken));
  if (!open.empty())
    return policy_answer(kName, PolicyVerdict::kUndecided, "tensor",
                         " that cannot be read whole or holds no plain numbers", std::move(open));
  return policy_answer(kName, PolicyVerdict::kMet,
                       "no NaN and no infinity in " + plural(told.size(), "tensor"));
}

// States by parameter, under whatever name they call it.
struct StatesSeen {
  std::map<std::string, std::set<std::string>> kinds;  // by key
  std::set<TensorId> parameters;                       // that have at least one
};

StatesSeen states_seen(const Checkpoint& checkpoint) {
  StatesSeen seen;
  for (const OptimizerState& state : optimizer_states(checkpoint)) {
    seen.kinds[state.key].insert(state.kind);
    if (state.parameter) seen.parameters.insert(*state.parameter);
  }
  // A state that is an object counts as there: what it holds is not looked at.
  for (const ObjectRow& object : checkpoint.objects()) {
    if (auto path = parse_state_fqn(object.fqn))
      seen.kinds[std::string(path->key)].insert(std::string(path->kind));
  }
  return seen;
}

// What more than half of the parameters have is what the optimizer keeps.
std::set<std::string> kept_kinds(const StatesSeen& seen) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [key, kinds] : seen.kinds) {
    for (const std::string& kind : kinds) ++counts[kind];
  }
  std::set<std::string> kept;
  for (const auto& [kind, count] : counts) {
    if (count * 2 > seen.kinds.size()) kept.insert(kind);
  }
  return kept;
}

PolicyAnswer judge_optimizer(const Checkpoint& checkpoint) {
  constexpr std::string_view kName = "optimizer-complete";
  StatesSeen seen = states_seen(checkpoint);
  if (seen.kinds.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "there are no optimizer states");
  std::set<std::string> kept = kept_kinds(seen);
  std::vector<std::string> broken;
  for (const auto& [key, kinds] : seen.kinds) {
    if (!std::includes(kinds.begin(), kinds.end(), kept.begin(), kept.end())) broken.push_back(key);
  }
  // Only some formats say which tensors are trained; where none is said, names alone tell nothing.
  bool says_trained = false;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    if (!checkpoint.requires_grad(tensor) || parse_state_fqn(checkpoint.fqn(tensor))) continue;
    says_trained = true;
    if (!seen.parameters.contains(tensor)) broken.emplace_back(checkpoint.fqn(tensor));
  }
  if (!broken.empty())
    return policy_answer(kName, PolicyVerdict::kBroken, "parameter",
                         " without all of the states that the optimizer keeps", std::move(broken));
  std::string whole = plural(seen.kinds.size(), "parameter") + " with all states of the optimizer";
  if (says_trained) return policy_answer(kName, PolicyVerdict::kMet, std::move(whole));
  return policy_answer(kName, PolicyVerdict::kMet,
                       whole + "; which tensors are trained the checkpoint does not say");
}

}  // namespace

std::string_view name(PolicyVerdict verdict) {
  if (verdict == PolicyVerdict::kMet) return "met";
  return verdict == PolicyVerdict::kBroken ? "broken" : "undecided";
}

Result<std::vector<PolicyAnswer>> judge_policies(const Checkpoint& checkpoint,
                                                 std::span<const std::string> required, bool data,
                                                 Progress* progress) {
  std::vector<PolicyAnswer> answers;
  for (const std::string& require : required) {
    if (require == kPolicies[0]) answers.push_back(judge_coverage(checkpoint));
    if (require == kPolicies[1]) {
      SHW_TRY(PolicyAnswer finite, judge_finite(checkpoint, data, progress));
      answers.push_back(std::move(finite));
    }
    if (require == kPolicies[2]) answers.push_back(judge_optimizer(checkpoint));
  }
  return answers;
}

}  // namespace shw
