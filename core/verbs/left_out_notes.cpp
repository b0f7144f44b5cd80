#include "core/verbs/left_out_notes.h"

#include <fmt/core.h>

#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "core/base/parse_text.h"
#include "core/base/words.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMaxPatterns = 64;  // a family of models has about 30 per kind

// Numbers that are a part of their own become *: a pattern that --leave-out takes.
std::string pattern_of_name(std::string_view name) {
  std::string out;
  for (const std::string_view part : split_at(name, '.')) {
    if (!out.empty()) out += '.';
    out += is_all_digits(part) ? std::string_view("*") : part;
  }
  return out;
}

// "optimizer.param_groups.layers.0.weight.lr" becomes "optimizer.param_groups.*.lr".
std::string pattern_of_entry(const std::string& name) {
  for (const std::string_view groups : {"param_groups.", "param_to_group_meta."}) {
    const std::size_t at = name.find(groups), dot = name.rfind('.');
    if (at != std::string::npos && dot >= at + groups.size())
      return name.substr(0, at + groups.size()) + "*" + name.substr(dot);
  }
  return pattern_of_name(name);
}

template <class Pattern>
std::string patterns_text(const std::vector<std::string>& names, const Pattern& pattern_of) {
  std::map<std::string, std::vector<const std::string*>> found;
  for (const std::string& name : names) found[pattern_of(name)].push_back(&name);
  std::vector<std::string> patterns;
  for (const auto& [pattern, of] : found)
    patterns.push_back(of.size() == 1 ? *of.front() : pattern);
  return short_list_text(patterns, kMaxPatterns);
}

std::string reason_text(StateOmissionReason why, const std::string& program) {
  switch (why) {
    case StateOmissionReason::kNoPlace:
      return program + " does not store them";
    case StateOmissionReason::kByOption:
      return "--leave-out names them";
    case StateOmissionReason::kNoWeight:
      return "no weight has that name";
    case StateOmissionReason::kOtherShape:
      return "their shapes differ from their weights";
    case StateOmissionReason::kNotElementwise:
      return "they do not have one value per element of their weights";
    case StateOmissionReason::kSecond:
      return "their weights have another such state, which is converted";
    case StateOmissionReason::kNoWeightInTarget:
      return "their weights are left out";
    case StateOmissionReason::kIncomplete:
      return "weights that theirs are joined with have none";
  }
  return {};
}

// True where the name of each state matters, and not only its kind.
bool depends_on_name(StateOmissionReason why) {
  return why != StateOmissionReason::kNoPlace && why != StateOmissionReason::kByOption;
}

// The steps of converted states are written anew, which has a note of its own.
std::vector<OmittedState> without_converted_steps(const MappedSteps& mapped) {
  std::vector<OmittedState> states = mapped.left_out_states;
  if (!mapped.states.empty())
    std::erase_if(states, [](const OmittedState& state) { return state.kind == "step"; });
  return states;
}

}  // namespace

std::vector<std::string> left_out_state_texts(std::span<const OmittedState> states,
                                              const std::string& program) {
  std::map<std::pair<std::string, StateOmissionReason>, std::vector<std::string>> kinds;
  for (const OmittedState& state : states) kinds[{state.kind, state.why}].push_back(state.fqn);
  std::vector<std::string> texts;
  for (const auto& [key, names] : kinds) {
    const auto& [kind, why] = key;
    std::string names_text;
    if (depends_on_name(why)) names_text = " (" + patterns_text(names, pattern_of_name) + ")";
    texts.push_back(fmt::format("{} of {}{}: {}", kind, plural(names.size(), "tensor"), names_text,
                                reason_text(why, program)));
  }
  return texts;
}

std::string left_out_tensors_text(const std::vector<std::string>& names) {
  return fmt::format("{} ({})", plural(names.size(), "tensor"),
                     patterns_text(names, pattern_of_name));
}

void add_left_out_notes(const MappedSteps& mapped, std::vector<std::string>& notes) {
  std::set<std::string> of_optimizer;
  for (const OmittedState& state : mapped.left_out_states) of_optimizer.insert(state.fqn);
  std::vector<std::string> others;
  for (const std::string& name : mapped.left_out) {
    if (!of_optimizer.contains(name)) others.push_back(name);
  }
  if (!others.empty()) notes.push_back("left out: " + left_out_tensors_text(others));
  for (const std::string& text : left_out_state_texts(without_converted_steps(mapped), mapped.to))
    notes.push_back("left out of the optimizer: " + text);
  if (!mapped.omitted_entries.empty())
    notes.push_back(fmt::format("left out, next to tensors of the optimizer: {} ({})",
                                plural(mapped.omitted_entries.size(), "entry"),
                                patterns_text(mapped.omitted_entries, pattern_of_entry)));
}

}  // namespace shw::verbs
