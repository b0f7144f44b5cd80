#include "core/facts/names/class_sizes.h"

#include <cstddef>

#include "core/base/json.h"
#include "core/facts/names/line_table.h"

namespace shw {
namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr char kLettersOfSizes[] =
#include "config_sizes.inc"
    ;
#pragma GCC diagnostic pop
constexpr LineTable kSizesTable(std::string_view(kLettersOfSizes, sizeof(kLettersOfSizes) - 1));

std::vector<std::string> strings_from_json_line(std::string_view line) {
  return parse_json<nlohmann::json>(line).tree.get<std::vector<std::string>>();
}

}  // namespace

std::optional<ClassSizes> sizes_of_class(std::string_view class_name) {
  const std::string_view line = kSizesTable.row(class_name);
  if (line.empty()) return std::nullopt;
  const auto of_class = parse_json<nlohmann::json>(line).tree;
  static const std::vector<std::string_view> rows = kSizesTable.lines("rows"),
                                             counts = kSizesTable.lines("counts");
  ClassSizes found;
  found.types = of_class.at("types").get<std::vector<std::string>>();
  for (std::size_t row : of_class.at("rows").get<std::vector<std::size_t>>()) {
    // The common start of the names, two size expressions, then the rest of each name.
    const std::vector<std::string> texts = strings_from_json_line(rows[row]);
    for (std::size_t i = 3; i < texts.size(); ++i)
      found.sizes.push_back({texts[0] + texts[i], {texts[1], texts[2]}});
  }
  for (std::size_t count : of_class.at("counts").get<std::vector<std::size_t>>()) {
    const std::vector<std::string> texts = strings_from_json_line(counts[count]);
    found.counts.push_back({texts[0], texts[1]});
  }
  return found;
}

}  // namespace shw
