// Hypotheses from table rows.
#include <algorithm>

#include "core/base/parse_text.h"
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string command_of(const Interpretation& meaning) {
  if (meaning.command.starts_with("shardwright ")) return std::string(meaning.command);
  return check_command(meaning.command);
}

bool is_plain(std::string_view name) {
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == name.npos;
}

// Replaces NAME at the end of a command if the name needs no quoting.
void name_in_command(std::string& command, std::string_view name) {
  constexpr std::string_view kName = " NAME";
  if (!command.ends_with(kName)) return;
  command.resize(command.size() - kName.size());
  if (!name.empty() && is_plain(name)) command += " " + std::string(name);
}

// A meaning of some programs alone is likely if one of them speaks, and unlikely if another does.
double likelihood_for_program(const Interpretation& meaning, std::string_view speaker) {
  if (meaning.speakers.empty() || speaker.empty()) return meaning.weight;
  constexpr double kMostLikely = 0.9, kUnlikely = 0.3;
  for (std::string_view one : split_at(meaning.speakers, '|')) {
    if (one == speaker)
      return std::max(meaning.weight, std::min(kMostLikely, meaning.weight * 1.5));
  }
  return meaning.weight * kUnlikely;
}

}  // namespace

Hypothesis hypothesis_of(const Interpretation& meaning) {
  bool rules_own = meaning.id.empty() && meaning.rule != nullptr;
  Hypothesis one{std::string(rules_own ? meaning.rule->id : meaning.id), meaning.rule,
                 meaning.wrong, meaning.weight};
  one.title = meaning.title;
  one.text = meaning.text;
  one.decide = meaning.decide;
  one.command = command_of(meaning);
  return one;
}

void add_hypotheses_from_kind(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  for (const Interpretation& meaning : message.kind->meanings) {
    if (meaning.title.empty()) break;
    Hypothesis one = hypothesis_of(meaning);
    one.confidence = likelihood_for_program(meaning, message.speaker);
    name_in_command(one.command, message.name);
    if (!message.name.empty()) one.evidence.emplace_back("name", message.name);
    for (const auto& [key, number] : message.numbers)
      one.evidence.emplace_back(std::string(key), number);
    if (!message.saved.empty() && !message.current.empty()) {
      one.evidence.emplace_back("first_shape", to_text(ExtentsView(message.saved)));
      one.evidence.emplace_back("second_shape", to_text(ExtentsView(message.current)));
    }
    all.push_back(std::move(one));
  }
}

}  // namespace shw
