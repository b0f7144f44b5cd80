#include "core/formats/common/part_names.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"

namespace shw {
namespace {

constexpr std::uint32_t kMaxParts = 4096;  // limit, because a name may announce any number of files

}  // namespace

std::optional<PartName> parse_part_name(std::string_view path, std::string_view suffix) {
  if (!path.ends_with(suffix)) return std::nullopt;
  path.remove_suffix(suffix.size());
  std::size_t of = path.rfind("-of-");
  std::size_t dash = of == std::string_view::npos ? of : path.substr(0, of).rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view number = path.substr(dash + 1, of - dash - 1), count = path.substr(of + 4);
  PartName part{std::string(path.substr(0, dash + 1)), 0, 0, count.size()};
  auto at = consume_number(number), all = consume_number(count);
  if (!at || !all || !number.empty() || !count.empty() || *at == 0 || *at > *all ||
      *all > kMaxParts)
    return std::nullopt;
  part.number = *at;
  part.count = *all;
  return part;
}

std::vector<std::string> parts_not_among(const std::vector<PartName>& parts,
                                         std::string_view suffix) {
  std::map<std::pair<std::string, std::uint32_t>, std::set<std::uint32_t>> families;
  std::map<std::string, std::size_t> digits;
  for (const PartName& part : parts) {
    families[{part.before, part.count}].insert(part.number);
    digits[part.before] = part.digits;
  }
  std::vector<std::string> missing;
  for (const auto& [family, numbers] : families) {
    const auto& [before, count] = family;
    std::size_t width = digits[before];
    for (std::uint32_t number = 1; number <= count; ++number) {
      if (!numbers.contains(number))
        missing.push_back(
            fmt::format("{}{:0{}}-of-{:0{}}{}", before, number, width, count, width, suffix));
    }
  }
  return missing;
}

Finding parts_without_index_finding(const std::vector<std::string>& parts, const IndexNames& names,
                                    Severity severity) {
  const std::string index(names.usual);
  Finding finding = bad_record_finding(
      index, fmt::format("The index {} is missing next to the {} parts of this model ({}): "
                         "transformers needs it and does not find the model; loaders that read "
                         "every file do. All parts are there and were read.",
                         index, parts.size(), short_list_text(parts)));
  finding.severity = severity;
  finding.evidence = {{"parts", static_cast<std::int64_t>(parts.size())},
                      {"convert_to", std::string("safetensors")}};
  return finding;
}

}  // namespace shw
