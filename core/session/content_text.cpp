#include "core/session/content_text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shw {
namespace {

using Go = BytesCommand::Go;

constexpr std::array<std::pair<Go, std::string_view>, 5> kGoes{{{Go::kTile, ""},
                                                                {Go::kFinding, "finding"},
                                                                {Go::kNext, "next"},
                                                                {Go::kPrevious, "previous"},
                                                                {Go::kClose, "off"}}};
constexpr std::array<std::pair<verbs::SearchedValue, std::string_view>, 2> kSearchedValueNames{
    {{verbs::SearchedValue::kNan, "next-nan"},
     {verbs::SearchedValue::kDifference, "next-difference"}}};

}  // namespace

// "at OFFSET" is last, so that a path may contain any word.
std::optional<Command> parse_show_bytes(std::string_view rest) {
  for (auto [go, word] : kGoes) {
    if (rest == word) return BytesCommand{go};
  }
  if (rest.starts_with("find ") && rest.size() > 5)
    return BytesCommand{Go::kFind, {}, 0, std::string(rest.substr(5))};
  BytesCommand bytes{Go::kAt};
  std::size_t at = rest.rfind("at ");
  if (at == rest.npos || (at > 0 && rest[at - 1] != ' ')) return std::nullopt;
  auto offset = verbs::parse_offset(rest.substr(at + 3), 0);
  if (!offset) return std::nullopt;
  bytes.at = *offset;
  std::string_view file = rest.substr(0, at > 0 ? at - 1 : 0);
  if (!file.empty()) {
    if (!file.starts_with("file ") || file.size() == 5) return std::nullopt;
    bytes.file = file.substr(5);
  }
  return bytes;
}

std::string print_show_bytes(const Command& command) {
  const auto& c = as<BytesCommand>(command);
  for (auto [go, word] : kGoes) {
    if (c.go == go) return std::string(word);
  }
  if (c.go == Go::kFind) return "find " + c.pattern;
  return (c.file.empty() ? "" : "file " + c.file + " ") + "at " + std::to_string(c.at);
}

std::optional<Command> parse_show_values(std::string_view rest) {
  if (rest.empty()) return ValuesCommand{};
  if (rest == "off") return ValuesCommand{true};
  for (const auto& [sought, word] : kSearchedValueNames) {
    if (rest == word) return ValuesCommand{false, {}, sought};
  }
  auto ask = verbs::parse_values_request(rest);
  if (!ask) return std::nullopt;
  return ValuesCommand{false, std::move(*ask)};
}

std::string print_show_values(const Command& command) {
  const auto& c = as<ValuesCommand>(command);
  if (c.close) return "off";
  for (const auto& [sought, word] : kSearchedValueNames) {
    if (c.next == sought) return std::string(word);
  }
  return c.ask == verbs::ValuesRequest{} ? "" : verbs::to_text(c.ask);
}

std::optional<Command> parse_save_values(std::string_view rest) {
  const std::string_view kind = rest.substr(0, rest.find(' '));
  if (kind != "npy" && kind != "csv") return std::nullopt;
  rest.remove_prefix(std::min(rest.size(), kind.size() + 1));
  return SaveValuesCommand{kind == "npy" ? verbs::ValuesFile::kNpy : verbs::ValuesFile::kCsv,
                           std::string(rest)};
}

std::string print_save_values(const Command& command) {
  const auto& c = as<SaveValuesCommand>(command);
  return (c.kind == verbs::ValuesFile::kNpy ? "npy" : "csv") + (c.path.empty() ? "" : " " + c.path);
}

std::optional<Command> parse_browse(std::string_view rest) {
  return BrowseCommand{std::string(rest)};
}

std::string print_browse(const Command& command) {
  return as<BrowseCommand>(command).folder;
}

std::optional<Command> parse_tile_values(std::string_view rest) {
  if (rest.empty()) return TileValuesCommand{};
  if (rest == "off") return TileValuesCommand{true};
  if (!rest.starts_with("of ") || rest.size() == 3) return std::nullopt;
  return TileValuesCommand{false, std::string(rest.substr(3))};
}

std::string print_tile_values(const Command& command) {
  const auto& c = as<TileValuesCommand>(command);
  return c.stop ? "off" : c.fqn.empty() ? "" : "of " + c.fqn;
}

std::optional<Command> parse_go(std::string_view rest) {
  if (rest == "back") return GoCommand{-1};
  if (rest == "forward") return GoCommand{1};
  return std::nullopt;
}

std::string print_go(const Command& command) {
  return as<GoCommand>(command).step < 0 ? "back" : "forward";
}

}  // namespace shw
