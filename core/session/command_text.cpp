// Every command has a text form: one line of a replay script, a bug report, or the command palette.
//
//   line    = word { " " argument }         a path or FQN extends up to the next keyword
//   keywords are those in brackets in the row's `form` (commands.cpp)
#include "core/session/command_text.h"

#include <array>

#include "core/base/parse_text.h"

namespace shw {
namespace {

constexpr std::array<std::pair<SortKey, std::string_view>, 7> kSortKeys{
    {{SortKey::kRecorded, "recorded"},
     {SortKey::kName, "name"},
     {SortKey::kBytes, "bytes"},
     {SortKey::kChunks, "tiles"},
     {SortKey::kFindings, "findings"},
     {SortKey::kShape, "shape"},
     {SortKey::kDtype, "dtype"}}};

// Removes " keyword REST" from the end of `text` and returns REST; empty if absent.
std::string consume_last(std::string_view& text, std::string_view keyword) {
  std::string mark = " " + std::string(keyword) + " ";
  std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  std::string value(text.substr(at + mark.size()));
  text = text.substr(0, at);
  return value;
}

// Removes "KEY WORD " from the front of `rest` and returns the word.
std::optional<std::string_view> consume_key_and_word(std::string_view& rest, std::string_view key) {
  if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != ' ')
    return std::nullopt;
  rest.remove_prefix(key.size() + 1);
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

constexpr std::string_view kRemembered = " remembered";

std::string with(std::string_view keyword, const std::string& value) {
  return value.empty() ? "" : " " + std::string(keyword) + " " + value;
}

}  // namespace

std::optional<Command> parse_open(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  OpenCommand open;
  if (rest.ends_with(kRemembered)) {
    open.remembered = true;
    rest.remove_suffix(kRemembered.size());
  }
  open.finding = consume_last(rest, "finding");
  open.tile = consume_last(rest, "tile");
  open.tensor = consume_last(rest, "tensor");
  open.mesh = consume_last(rest, "mesh");
  open.against = consume_last(rest, "against");
  open.spec = consume_last(rest, "spec");
  open.path = rest;
  return open;
}
std::string print_open(const Command& command) {
  const auto& c = as<OpenCommand>(command);
  return c.path + with("spec", c.spec) + with("against", c.against) + with("mesh", c.mesh) +
         with("tensor", c.tensor) + with("tile", c.tile) + with("finding", c.finding) +
         (c.remembered ? std::string(kRemembered) : std::string());
}

std::optional<Command> parse_check(std::string_view rest) {
  if (rest.empty()) return CheckCommand{};
  for (Depth depth : {Depth::kMetadata, Depth::kHeaders, Depth::kData}) {
    if (rest == name(depth)) return CheckCommand{depth};
  }
  return std::nullopt;
}
std::string print_check(const Command& command) {
  const auto& c = as<CheckCommand>(command);
  return c.depth ? std::string(name(*c.depth)) : "";
}

std::optional<Command> parse_given_mesh(std::string_view rest) {
  return MeshCommand{std::string(rest)};
}
std::string print_mesh(const Command& command) {
  return as<MeshCommand>(command).text;
}

std::optional<Command> parse_plan(std::string_view rest) {
  PlanCommand plan;
  constexpr std::string_view kThere = "over-there";
  plan.on_remote_host = rest == kThere || rest.starts_with(std::string(kThere) + " ");
  if (plan.on_remote_host) rest.remove_prefix(std::min(kThere.size() + 1, rest.size()));
  if (rest.empty()) return plan;
  if (rest.size() == 5) return std::nullopt;
  if (rest.starts_with("fill ")) {
    plan.fill = rest.substr(5);
    return plan;
  }
  if (!plan.on_remote_host && rest.starts_with("then "))
    return PlanCommand{{}, false, std::string(rest.substr(5))};
  return std::nullopt;
}
std::string print_plan(const Command& command) {
  const auto& c = as<PlanCommand>(command);
  if (!c.then.empty()) return "then " + c.then;
  const std::string fill = c.fill.empty() ? "" : "fill " + c.fill;
  if (!c.on_remote_host) return fill;
  return fill.empty() ? "over-there" : "over-there " + fill;
}

// "plan HASH device cuda:1 out PATH": options first, because a path may contain anything.
std::optional<Command> parse_repair(std::string_view rest) {
  RepairCommand repair;
  if (const auto plan = consume_key_and_word(rest, "plan")) {
    if (plan->empty()) return std::nullopt;
    repair.plan = *plan;
  }
  if (const auto device = consume_key_and_word(rest, "device")) {
    if (!parse_device(*device, repair.options.device)) return std::nullopt;
  }
  repair.options.in_place = rest == "in-place";
  if (rest.empty() || repair.options.in_place) return repair;
  if (!rest.starts_with("out ") || rest.size() == 4) return std::nullopt;
  repair.options.out = rest.substr(4);
  return repair;
}
std::string print_repair(const Command& command) {
  const auto& repair = as<RepairCommand>(command);
  const ApplyOptions& options = repair.options;
  std::string text;
  const auto append = [&](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (!repair.plan.empty()) append("plan " + repair.plan);
  if (const std::string device = to_text(options.device); device != "auto")
    append("device " + device);
  if (options.in_place)
    append("in-place");
  else if (!options.out.empty())
    append("out " + options.out);
  return text;
}

std::optional<Command> parse_select(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  return SelectTensorCommand{std::string(rest)};
}
std::string print_select(const Command& command) {
  return as<SelectTensorCommand>(command).fqn;
}

std::optional<Command> parse_tile(std::string_view rest) {
  if (rest.empty()) return SelectChunkCommand{};
  auto index = parse_number<std::uint32_t>(rest);
  if (!index) return std::nullopt;
  return SelectChunkCommand{ChunkId{*index}};
}
std::string print_tile(const Command& command) {
  const auto& c = as<SelectChunkCommand>(command);
  return c.chunk ? std::to_string(index_of(*c.chunk)) : "";
}

std::optional<Command> parse_finding(std::string_view rest) {
  auto index = parse_number<std::uint32_t>(rest);
  if (!index) return std::nullopt;
  return SelectFindingCommand{*index};
}
std::string print_finding(const Command& command) {
  return std::to_string(as<SelectFindingCommand>(command).index);
}

std::optional<Command> parse_filter(std::string_view rest) {
  return FilterCommand{std::string(rest)};
}
std::string print_filter(const Command& command) {
  return as<FilterCommand>(command).text;
}

std::optional<Command> parse_sort(std::string_view rest) {
  SortCommand sort;
  if (rest.ends_with(" desc")) {
    sort.descending = true;
    rest.remove_suffix(5);
  }
  for (auto [key, word] : kSortKeys) {
    if (rest != word) continue;
    sort.key = key;
    return sort;
  }
  return std::nullopt;
}
std::string print_sort(const Command& command) {
  const auto& c = as<SortCommand>(command);
  std::string text;
  for (auto [key, word] : kSortKeys) {
    if (key == c.key) text = word;
  }
  return text + (c.descending ? " desc" : "");
}

}  // namespace shw
