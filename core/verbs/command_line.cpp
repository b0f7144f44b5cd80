#include "core/verbs/command_line.h"

#include <algorithm>
#include <array>

#include "core/model/repair_format.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

// Verbs that use references, and verbs that write.
constexpr std::array<std::string_view, 5> kLooking{"check", "plan", "repair", "report", "gui"};
constexpr std::array<std::string_view, 3> kPlanning{"plan", "repair", "report"};
constexpr std::array<std::string_view, 2> kVerbsWithVerdict{"check", "report"};

bool is_one_of(std::string_view verb, std::span<const std::string_view> verbs) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace

std::string command_line(std::string_view verb, const VerbOptions& options) {
  std::string text = "shardwright " + std::string(verb) + " " + shell_word(options.checkpoint);
  auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) text += " " + std::string(option) + " " + shell_word(value);
  };
  bool planned = verb == "repair" && !options.plan.empty();
  if (is_one_of(verb, kLooking) && !planned) {
    add("--spec", options.spec);
    add("--against", options.against);
    add("--mesh", options.mesh);
    if (options.depth && verb != "gui") text += depth_option(*options.depth);
  }
  if (is_one_of(verb, kVerbsWithVerdict)) {
    add("--baseline", options.baseline);
    add("--policy", options.policy);
    if (options.ranks_per_node != 0)
      add("--ranks-per-node", std::to_string(options.ranks_per_node));
  }
  if (is_one_of(verb, kPlanning) && !planned) add("--fill", options.fill);
  if (verb == "plan" || verb == "repair") {
    for (const std::string& one : options.then) add("--then", one);
    if (!options.then.empty()) add("--placements", options.placements);
  }
  if (verb == "repair") {
    add("--plan", options.plan);
    add("--out", options.out);
    if (options.in_place) text += " --in-place";
  }
  return text;
}

std::string repair_command_line(const Checkpoint& checkpoint, const VerbOptions& options) {
  VerbOptions completed = options;
  const std::string_view conversion = conversion_after_repair(checkpoint);
  if (completed.then.empty() && !conversion.empty()) completed.then.emplace_back(conversion);
  return command_line("repair", completed);
}

}  // namespace shw
