#include "core/rules/storage/second_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Properties shared by the parts of a save: "model-", the number of parts, and the ending.
struct PartSet {
  std::string before;
  std::uint32_t count = 0;
  std::string_view suffix;
  auto operator<=>(const PartSet&) const = default;
};

std::optional<PartSet> part_set_of(std::string_view path) {
  constexpr auto kSuffixes = std::to_array<std::string_view>({".safetensors", ".bin"});
  for (const std::string_view suffix : kSuffixes) {
    if (auto part = parse_part_name(path, suffix))
      return PartSet{std::move(part->before), part->count, suffix};
  }
  return std::nullopt;
}

}  // namespace

void find_second_parts(const Facts& facts, std::vector<Finding>& findings) {
  // A stale index names parts of another save; its own finding speaks of both.
  const auto at_opening = facts.checkpoint.opening_findings();
  if (std::any_of(at_opening.begin(), at_opening.end(),
                  [](const Finding& one) { return one.rule == kIndexMisplaced.id; }))
    return;
  std::set<PartSet> opened;
  std::map<PartSet, std::vector<std::string>> others;
  for (const FileRow& row : facts.checkpoint.files()) {
    if (row.kind != EntryKind::kFile || !is_at_top(row.path)) continue;
    auto set = part_set_of(row.path);
    if (!set) continue;
    if (row.referenced)
      opened.insert(std::move(*set));
    else
      others[std::move(*set)].push_back(row.path);
  }
  for (auto& [set, files] : others) {
    for (const PartSet& used : opened) {
      if (used.before != set.before || used.suffix != set.suffix || used.count == set.count)
        continue;
      Finding finding{.rule = std::string(kOtherForm.id), .severity = Severity::kWarning};
      finding.cause = fmt::format(
          "{} {} of a save in {}, and the model that was opened is one in {}: two saves are in one "
          "folder. transformers and vLLM follow the index and load the opened one. Programs that "
          "load every file of these names (mlx-lm, llama.cpp's converter) mix the two. Decide "
          "which save is right, and delete the other.",
          short_list_text(files), files.size() == 1 ? "is a part" : "are parts",
          plural(set.count, "part"), plural(used.count, "part"));
      finding.evidence = {{"count", count_of(files.size())}, {"details", capped(files)}};
      finding.subjects = std::move(files);
      findings.push_back(std::move(finding));
      break;
    }
  }
}

}  // namespace shw
