// Messages whose row says what they can mean.
#include "core/explain/hypotheses.h"
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string command_of(const Meaning& meaning) {
  if (meaning.command.starts_with("shardwright ")) return std::string(meaning.command);
  return check_command(meaning.command);
}

}  // namespace

Hypothesis hypothesis_of(const Meaning& meaning) {
  bool rules_own = meaning.id.empty() && meaning.rule != nullptr;
  Hypothesis one{std::string(rules_own ? meaning.rule->id : meaning.id), meaning.rule,
                 meaning.wrong, meaning.weight};
  one.title = meaning.title;
  one.text = meaning.text;
  one.decide = meaning.decide;
  one.command = command_of(meaning);
  return one;
}

void suppose_from_kind(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  for (const Meaning& meaning : message.kind->meanings) {
    if (meaning.title.empty()) break;
    Hypothesis one = hypothesis_of(meaning);
    if (!message.name.empty()) one.evidence.emplace_back("name", message.name);
    for (const auto& [key, number] : message.numbers)
      one.evidence.emplace_back(std::string(key), number);
    all.push_back(std::move(one));
  }
}

}  // namespace shw
