#include "core/facts/names/architectures.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "core/base/json.h"
#include "core/facts/names/line_table.h"

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
constexpr LineTable kArchitectureTable(std::string_view(kLetters, sizeof(kLetters) - 1));

std::vector<std::string> names_from_json_group(std::string_view line) {
  const auto words = parse_json<nlohmann::json>(line).tree.get<std::vector<std::string>>();
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) names.push_back(words.front() + words[i]);
  return names;
}

}  // namespace

std::optional<Architecture> architecture_named(std::string_view class_name) {
  const std::string_view line = kArchitectureTable.row(class_name);
  if (line.empty()) return std::nullopt;
  const auto row = parse_json<nlohmann::json>(line).tree;
  static const std::vector<std::string_view> groups = kArchitectureTable.lines("groups");
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
      found.groups.push_back(
          {names_from_json_group(groups[group]), kind == std::string_view("always")});
  }
  return found;
}

}  // namespace shw
