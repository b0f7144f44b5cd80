#include "core/formats/common/newest_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/words.h"
#include "core/formats/common/how_read_finding.h"

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

std::vector<std::string> letter_runs_of_stem(const std::string& stem) {
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
  const auto own = letter_runs_of_stem(stem);
  return !own.empty() && own.front() == "ep" &&
         std::find(own.begin(), own.end(), "ba") != own.end();
}

template <std::size_t N>
bool has_word(const std::string& stem, const std::array<std::string_view, N>& words) {
  const auto own = letter_runs_of_stem(stem);
  return std::any_of(own.begin(), own.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

// File names without suffix, and without "rank0" if all end in it ("ep1-rank0.pt").
std::vector<std::string> stems_without_rank0(const std::vector<std::string>& paths) {
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
std::optional<std::string> final_file_without_number(const std::vector<std::string>& paths,
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

// The first number of a stem, and the stem without it.
struct FirstNumber {
  std::int64_t number = 0;
  std::string before, around;  // "model_", "model_#"
};
std::optional<FirstNumber> first_number(const std::string& stem) {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = stem.find_first_of(kDigits);
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t end = std::min(stem.find_first_not_of(kDigits, begin), stem.size());
  FirstNumber first{0, stem.substr(0, begin), stem.substr(0, begin) + "#" + stem.substr(end)};
  const auto read = std::from_chars(stem.data() + begin, stem.data() + end, first.number);
  return read.ec == std::errc() ? std::optional(first) : std::nullopt;
}

}  // namespace

std::vector<std::vector<std::string>> saves_by_name(const std::vector<std::string>& paths) {
  std::map<std::int64_t, std::map<std::string, std::string>> saves;  // by step and name around it
  for (const std::string& path : paths) {
    auto first = first_number(path.substr(0, path.rfind('.')));
    if (!first || has_word(first->before, kPartWords)) return {};
    saves[first->number].emplace(std::move(first->around), path);
  }
  std::vector<std::vector<std::string>> out;
  std::size_t count = 0;
  for (const auto& [step, files] : saves) {
    const auto& last = saves.rbegin()->second;
    const bool is_alike =
        std::equal(files.begin(), files.end(), last.begin(), last.end(),
                   [](const auto& file, const auto& other) { return file.first == other.first; });
    if (!is_alike || files.size() < 2) return {};
    out.emplace_back();
    for (const auto& [around, path] : files) out.back().push_back(path);
    count += files.size();
  }
  if (out.size() < 2 || count != paths.size()) out.clear();
  return out;
}

std::optional<std::string> newest_by_name(const std::vector<std::string>& paths) {
  const std::vector<std::string> stems = stems_without_rank0(paths);
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
  if (patterns.size() == 2 && patterns.contains("")) return final_file_without_number(paths, stems);
  if (patterns.size() != 1 || patterns.contains("")) return std::nullopt;
  return numbered;
}

Finding newest_file_finding(const std::vector<std::string>& opened,
                            std::vector<std::string> aside) {
  const std::string which =
      opened.size() > 1
          ? "the last save by their names"
          : fmt::format("the last by name of {} files of one model", aside.size() + 1);
  Finding finding = how_read_finding(
      opened.front(),
      fmt::format("Opened {}, {}. Not opened: {}. To open one of them, give its path.",
                  short_list_text(opened), which, short_list_text(aside)));
  finding.evidence = {{"opened", static_cast<std::int64_t>(opened.size())},
                      {"left_aside", static_cast<std::int64_t>(aside.size())}};
  finding.subjects = std::move(aside);
  return finding;
}

}  // namespace shw
