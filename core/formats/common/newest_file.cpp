#include "core/formats/common/newest_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/base/words.h"
#include "core/formats/common/read_note.h"

namespace shw {
namespace {

// Numbers after these words are counts of parts, not steps.
constexpr auto kPartWords = std::to_array<std::string_view>(
    {"rank", "shard", "part", "world", "of", "tp", "pp", "mp", "dp", "ep", "stage", "layer",
     "chunk", "consolidated", "worker", "gpu", "device", "fold"});
constexpr auto kLastWords = std::to_array<std::string_view>({"last", "latest", "final"});

// Replaces numbers by "#" ("epoch_#"); empty if there are none.
std::string pattern_of_stem(const std::string& stem) {
  std::string pattern;
  for (char c : stem) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) pattern += c;
    if (is_digit && !pattern.ends_with('#')) pattern += '#';
  }
  return pattern.find('#') == std::string::npos ? std::string() : pattern;
}

std::vector<std::string> words_of_stem(const std::string& stem) {
  std::vector<std::string> words(1);
  for (char c : stem) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (small >= 'a' && small <= 'z')
      words.back() += small;
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

// True for Composer's names, which count epochs and batches: "ep0-ba10".
bool counts_batches(const std::string& stem) {
  const auto own = words_of_stem(stem);
  return !own.empty() && own.front() == "ep" &&
         std::find(own.begin(), own.end(), "ba") != own.end();
}

template <std::size_t N>
bool has_word(const std::string& stem, const std::array<std::string_view, N>& words) {
  const auto own = words_of_stem(stem);
  return std::any_of(own.begin(), own.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

// File names without suffix, and without "rank0" if all end in it ("ep1-rank0.pt").
std::vector<std::string> stems_of(const std::vector<std::string>& paths) {
  constexpr std::string_view kFirstRank = "rank0";
  std::vector<std::string> stems;
  for (const std::string& path : paths) stems.push_back(path.substr(0, path.rfind('.')));
  const bool is_first_rank = std::all_of(stems.begin(), stems.end(), [&](const std::string& stem) {
    return stem.ends_with(kFirstRank);
  });
  for (std::string& stem : stems) {
    if (is_first_rank) stem.resize(stem.size() - kFirstRank.size());
  }
  return stems;
}

// "lora.safetensors" next to "lora-000001.safetensors": the end of a training has no number.
// nullopt if several files have none, or if another one's name does not begin with this one's.
std::optional<std::string> unnumbered_end(const std::vector<std::string>& paths,
                                          const std::vector<std::string>& stems) {
  std::optional<std::size_t> end;
  for (std::size_t i = 0; i < stems.size(); ++i) {
    if (!pattern_of_stem(stems[i]).empty()) continue;
    if (end) return std::nullopt;
    end = i;
  }
  const bool is_end = end && std::all_of(stems.begin(), stems.end(), [&](const std::string& stem) {
                        return stem.starts_with(stems[*end]);
                      });
  return is_end ? std::optional(paths[*end]) : std::nullopt;
}

}  // namespace

std::optional<std::string> newest_by_name(const std::vector<std::string>& paths) {
  const std::vector<std::string> stems = stems_of(paths);
  std::set<std::string> patterns;
  std::string last, numbered;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (has_word(stems[i], kPartWords) && !counts_batches(stems[i])) return std::nullopt;
    if (has_word(stems[i], kLastWords)) {
      if (!last.empty()) return std::nullopt;
      last = paths[i];
    } else {
      patterns.insert(pattern_of_stem(stems[i]));
      numbered = paths[i];
    }
  }
  // With a "last" file, a file without a number such as "best.pt" is a known companion.
  if (!last.empty()) return last;
  if (patterns.size() == 2 && patterns.contains("")) return unnumbered_end(paths, stems);
  if (patterns.size() != 1 || patterns.contains("")) return std::nullopt;
  return numbered;
}

Finding newest_file_finding(const std::string& newest, std::vector<std::string> aside) {
  Finding finding =
      read_note(newest, fmt::format("Opened {}, the last one by its name of {} files of one model. "
                                    "Not opened: {}. A path to one of them opens that one.",
                                    newest, aside.size() + 1, some_of(aside)));
  finding.evidence = {{"opened", std::int64_t{1}},
                      {"left_aside", static_cast<std::int64_t>(aside.size())}};
  finding.subjects = std::move(aside);
  return finding;
}

}  // namespace shw
