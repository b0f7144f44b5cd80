#include "core/rules/values/groups_without_states.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct ListedParameterStates {
  std::vector<std::string> without;
  std::size_t with = 0;  // parameters with states
};

// Listed parameters, if groups list names. Numbers are matched by position, and torch treats
// parameters without state as new.
ListedParameterStates listed_in_groups(const SavedOptimizer& optimizer) {
  if (optimizer.by_parameter) return {optimizer.without_states, optimizer.groups.size()};
  ListedParameterStates out;
  for (const ParamGroup& group : optimizer.groups) {
    for (const std::string& param : group.params) {
      const bool is_number =
          std::all_of(param.begin(), param.end(), [](char c) { return c >= '0' && c <= '9'; });
      // Keys of a parameter may be longer, for example SOAP's bases "3.weight.Q.0".
      const auto after = optimizer.keys.lower_bound(param);
      const bool has_state =
          after != optimizer.keys.end() && (*after == param || after->starts_with(param + "."));
      if (has_state)
        ++out.with;
      else if (!is_number)
        out.without.push_back(param);
    }
  }
  return out;
}

// The names that are parameters of the checkpoint, in its spelling; all names if it has no
// parameters.
std::vector<std::string> parameters_among(const Facts& facts, std::vector<std::string> names) {
  std::map<std::string, std::string> model;  // by name without wrappers
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = facts.checkpoint.fqn(tensor);
    if (!parse_state_fqn(fqn)) model.emplace(unwrapped_name(fqn), fqn);
  }
  if (model.empty()) return names;
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (auto parameter = model.find(name); parameter != model.end())
      found.push_back(parameter->second);
  }
  return found;
}

}  // namespace

void find_groups_without_states(const Facts& facts, const SavedOptimizer& optimizer,
                                std::vector<Finding>& findings) {
  auto [listed, with] = listed_in_groups(optimizer);
  if (listed.empty()) return;
  const std::vector<std::string> names = parameters_among(facts, std::move(listed));
  // If most parameters have no states, they are frozen but still in groups, or states are spelled
  // differently from groups.
  if (names.empty() || names.size() > with) return;
  const bool is_one = names.size() == 1;
  Finding finding{.rule = std::string(kOptimizerGroups.id)};
  // Groups may list frozen parameters; but torch's flattened form requires states of
  // each.
  finding.severity = optimizer.by_parameter ? Severity::kWarning : Severity::kInfo;
  finding.link = "pytorch #192224";
  finding.subjects = names;
  finding.cause = fmt::format(
      "{} {} in {}param_groups and {} no state ({}); {} have one. Either {} never got a gradient, "
      "or {} states were left out of the save. A strict load in torch fails at {} where {}.",
      plural(names.size(), "parameter"), is_one ? "is" : "are", optimizer.prefix,
      is_one ? "has" : "have", short_list_text(names), human_count(with), is_one ? "it" : "they",
      is_one ? "its" : "their", is_one ? "it" : "the first of them",
      is_one ? "it trains" : "they train");
  finding.evidence = {
      {"without_states", capped(names)},
      {"count", count_of(names.size())},
      {"with_states", count_of(with)},
      {"what_to_do",
       std::string(
           "freeze them before the optimizer is built, or load with "
           "StateDictOptions(strict=False): the optimizer then starts from scratch for them")}};
  findings.push_back(std::move(finding));
}

}  // namespace shw
