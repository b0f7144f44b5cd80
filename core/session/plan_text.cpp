// Parsing and printing of plan commands; see command_text.h.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "core/session/command_text.h"

namespace shw {

// "3 off": steps are counted from 1, as displayed.
std::optional<Command> parse_step(std::string_view rest) {
  std::size_t step = 0;
  auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), step);
  if (code != std::errc{} || step == 0) return std::nullopt;
  std::string_view word(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
  if (word != " on" && word != " off") return std::nullopt;
  return StepCommand{step - 1, word == " on"};
}
std::string print_step(const Command& command) {
  const auto& c = as<StepCommand>(command);
  return fmt::format("{} {}", c.step + 1, c.on ? "on" : "off");
}

std::optional<Command> parse_edit_plan(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return EditPlanCommand{std::string(rest)};
}
// JSON on one line: line breaks become blanks.
std::string print_edit_plan(const Command& command) {
  std::string text = as<EditPlanCommand>(command).json;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::optional<Command> parse_save_plan(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return SavePlanCommand{std::string(rest)};
}
std::string print_save_plan(const Command& command) {
  return as<SavePlanCommand>(command).path;
}

std::optional<Command> parse_load_plan(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return LoadPlanCommand{std::string(rest)};
}
std::string print_load_plan(const Command& command) {
  return as<LoadPlanCommand>(command).path;
}

namespace {

constexpr std::string_view kKeep = "keep", kMeshOption = "mesh ", kDtypeOption = "dtype ",
                           kWeightsOnly = "weights-only";

// The first word of `text`, which is removed.
std::string_view consume_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

}  // namespace

std::optional<Command> parse_write_as(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  verbs::OutputForm wanted;
  const std::string_view to = consume_word(rest);
  if (to != kKeep) wanted.to = to;
  while (!rest.empty()) {
    if (rest == kWeightsOnly) {
      wanted.weights_only = true;
      break;
    }
    const bool is_mesh = rest.starts_with(kMeshOption);
    if (!is_mesh && !rest.starts_with(kDtypeOption)) return std::nullopt;
    consume_word(rest);
    (is_mesh ? wanted.mesh : wanted.dtype) = consume_word(rest);
  }
  return WriteAsCommand{wanted};
}
std::string print_write_as(const Command& command) {
  const verbs::OutputForm& wanted = as<WriteAsCommand>(command).wanted;
  std::string text(wanted.to.empty() ? kKeep : std::string_view(wanted.to));
  if (!wanted.mesh.empty()) text += fmt::format(" {}{}", kMeshOption, wanted.mesh);
  if (!wanted.dtype.empty()) text += fmt::format(" {}{}", kDtypeOption, wanted.dtype);
  return text + (wanted.weights_only ? fmt::format(" {}", kWeightsOnly) : "");
}

std::optional<Command> parse_target(std::string_view rest) {
  return TargetCommand{std::string(rest)};
}
std::string print_target(const Command& command) {
  return as<TargetCommand>(command).path;
}

std::optional<Command> parse_resume(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return ResumeCommand{std::string(rest)};
}
std::string print_resume(const Command& command) {
  return as<ResumeCommand>(command).folder;
}

std::optional<Command> parse_roll_back(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return RollBackCommand{std::string(rest)};
}
std::string print_roll_back(const Command& command) {
  return as<RollBackCommand>(command).folder;
}

}  // namespace shw
