#include "core/facts/names/architectures.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/base/json.h"

namespace shw {
namespace {

// The text has one group or class per line, so that only needed lines are parsed. It is longer than
// the C++ standard guarantees for a literal, but supported compilers accept it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr char kLetters[] =
#include "architectures.inc"
    ;
#pragma GCC diagnostic pop
constexpr std::string_view kText(kLetters, sizeof(kLetters) - 1);

using Lines = std::vector<std::string_view>;

// Removes the comma after a value.
std::string_view without_comma(std::string_view line) {
  if (line.ends_with(',')) line.remove_suffix(1);
  return line;
}

Lines lines_after(std::string_view text, std::string_view heading) {
  Lines lines;
  for (std::size_t at = text.find(heading); at != std::string_view::npos;) {
    at = text.find('\n', at);
    if (at == std::string_view::npos || text[++at] == ']' || text[at] == '}') break;
    lines.push_back(without_comma(text.substr(at, text.find('\n', at) - at)));
  }
  return lines;
}

std::vector<std::string> group_in(std::string_view line) {
  const auto words = parse_json<nlohmann::json>(line).tree.get<std::vector<std::string>>();
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) names.push_back(words.front() + words[i]);
  return names;
}

}  // namespace

std::optional<Architecture> architecture_named(std::string_view class_name) {
  const std::string key = "\n\"" + std::string(class_name) + "\":";
  const std::size_t at = kText.find(key);
  if (class_name.find_first_of("\"\n") != std::string_view::npos || at == std::string_view::npos)
    return std::nullopt;
  static const Lines groups = lines_after(kText, "\"groups\":");
  const std::size_t begin = at + key.size();
  const auto row = parse_json<nlohmann::json>(
                       without_comma(kText.substr(begin, kText.find('\n', begin) - begin)))
                       .tree;
  Architecture found;
  found.prefix = row.at("prefix").get<std::string>();
  found.ignored = row.value("ignored", std::vector<std::string>{});
  found.is_exact = row.value("exact", false);
  const auto renamed = row.value("in_memory", std::map<std::string, std::string>{});
  found.in_memory.assign(renamed.begin(), renamed.end());
  std::sort(found.in_memory.begin(), found.in_memory.end(),
            [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const char* kind : {"always", "sometimes"}) {
    for (std::size_t group : row.at(kind).get<std::vector<std::size_t>>())
      found.groups.push_back({group_in(groups[group]), kind == std::string_view("always")});
  }
  return found;
}

}  // namespace shw
