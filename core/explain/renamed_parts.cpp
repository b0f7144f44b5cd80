// Missing and unexpected names that pair up where one part of each is renamed.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/explain/hypotheses.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// "a.query.weight" and "a.to_q.weight": pairs that differ in one part, always by the same words.
struct RenamedPart {
  std::string saved, asked;  // "query", "to_q"
  std::size_t count = 0;
};

std::optional<std::pair<std::string_view, std::string_view>> find_single_differing_part(
    std::string_view saved, std::string_view asked) {
  const auto a = split_at(saved, '.'), b = split_at(asked, '.');
  if (a.size() != b.size() || a.size() < 2) return std::nullopt;
  std::optional<std::pair<std::string_view, std::string_view>> differing;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool is_number = is_all_digits(a[i]) || is_all_digits(b[i]);
    if (differing || is_number || i + 1 == a.size()) return std::nullopt;
    differing = std::pair(a[i], b[i]);
  }
  return differing;
}

// Name parts that differ between a missing and an unexpected name, with the number of missing names
// that have them. Empty if at most half of the missing names are explained. Compares the first 64
// names of each list.
std::vector<RenamedPart> renamed_parts(const KeyLists& keys) {
  constexpr std::size_t kMaxNames = 64, kMaxParts = 8;
  std::vector<RenamedPart> parts;
  std::size_t paired = 0;
  const std::size_t missing = std::min(keys.missing.size(), kMaxNames);
  const std::size_t unexpected = std::min(keys.unexpected.size(), kMaxNames);
  for (std::size_t i = 0; i < missing; ++i) {
    for (std::size_t j = 0; j < unexpected; ++j) {
      const auto part = find_single_differing_part(keys.unexpected[j], keys.missing[i]);
      if (!part) continue;
      ++paired;
      auto found = std::find_if(parts.begin(), parts.end(), [&](const RenamedPart& one) {
        return one.saved == part->first && one.asked == part->second;
      });
      if (found == parts.end())
        found = parts.insert(parts.end(), {std::string(part->first), std::string(part->second)});
      ++found->count;
      break;
    }
  }
  if (paired * 2 <= missing || parts.size() > kMaxParts) parts.clear();
  return parts;
}

}  // namespace

void add_renamed_parts(const KeyLists& keys, std::vector<Hypothesis>& all) {
  const std::vector<RenamedPart> parts = renamed_parts(keys);
  if (parts.empty()) return;
  std::vector<std::string> words;
  for (const RenamedPart& one : parts)
    words.push_back(fmt::format("{} for {}", one.saved, one.asked));
  Hypothesis one{"renamed", &kMissingKey, FaultSide::kEither, 0.9};
  one.title = "a module has different names in checkpoint and model";
  one.text = fmt::format(
      "The missing and the unexpected names form pairs that differ in one part: {}. A different "
      "library version or program uses that name. Nothing is lost: rename the part, or load with "
      "the version that saved.",
      short_list_text(words, 8));
  one.decide = "Check that the shapes of each pair agree.";
  one.command = check_command("--spec SPEC.json");
  one.evidence.emplace_back("saved_as", parts.front().saved);
  one.evidence.emplace_back("asked_as", parts.front().asked);
  all.push_back(std::move(one));
}

}  // namespace shw
