#include "core/verbs/command_line.h"

#include <algorithm>
#include <array>

#include "core/report/text_words.h"

namespace shw {
namespace {

// Which verbs look at what else the person knows, and which write.
constexpr std::array<std::string_view, 5> kLooking{"check", "plan", "repair", "report", "gui"};
constexpr std::array<std::string_view, 3> kPlanning{"plan", "repair", "report"};
constexpr std::array<std::string_view, 2> kJudging{"check", "report"};

bool is_one_of(std::string_view verb, std::span<const std::string_view> verbs) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

}  // namespace

std::string command_line(std::string_view verb, const VerbOptions& said) {
  std::string text = "shardwright " + std::string(verb) + " " + shell_word(said.checkpoint);
  auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) text += " " + std::string(option) + " " + shell_word(value);
  };
  bool planned = verb == "repair" && !said.plan.empty();
  if (is_one_of(verb, kLooking) && !planned) {
    add("--spec", said.spec);
    add("--against", said.against);
    add("--mesh", said.mesh);
    if (said.depth && verb != "gui") text += depth_option(*said.depth);
  }
  if (is_one_of(verb, kJudging)) {
    add("--baseline", said.baseline);
    add("--policy", said.policy);
  }
  if (is_one_of(verb, kPlanning) && !planned) add("--fill", said.fill);
  if (verb == "repair") {
    add("--plan", said.plan);
    add("--out", said.out);
    if (said.in_place) text += " --in-place";
  }
  return text;
}

}  // namespace shw
