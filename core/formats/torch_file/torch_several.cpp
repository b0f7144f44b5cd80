#include "core/formats/torch_file/torch_several.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/common/read_note.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/torch_file_choice.h"

namespace shw {
namespace {

constexpr std::size_t kMostSeveral = 4096;
// Numbers behind these count parts, not steps.
constexpr auto kPartWords = std::to_array<std::string_view>(
    {"rank", "shard", "part", "world", "of", "tp", "pp", "mp", "dp", "ep", "stage", "layer",
     "chunk", "consolidated", "worker", "gpu", "device", "fold"});
constexpr auto kLastWords = std::to_array<std::string_view>({"last", "latest", "final"});

// "epoch_#"; empty where there is no number.
std::string pattern_of(const std::string& stem) {
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

template <std::size_t N>
bool has_word(const std::string& stem, const std::array<std::string_view, N>& words) {
  const auto own = words_of_stem(stem);
  return std::any_of(own.begin(), own.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

// The files of weights at the top, in natural order.
Result<std::vector<std::string>> torch_weights_in(const DirectoryLook& look) {
  SHW_TRY(auto entries, look.entries());
  std::vector<std::string> weights;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry) || named_torch_file(entry.path) != NamedFile::kAlone ||
        trainer_file(entry.path) != TrainerFile::kNone)
      continue;
    // Those of Lightning are told by their names (run_folder.h).
    if (entry.path.ends_with(".ckpt")) return std::vector<std::string>{};
    SHW_TRY(bool is_archive, is_torch_archive(look, entry.path));
    if (is_archive) weights.push_back(entry.path);
    if (weights.size() > kMostSeveral) return std::vector<std::string>{};
  }
  std::sort(weights.begin(), weights.end(),
            [](const auto& a, const auto& b) { return natural_less(a, b); });
  return weights;
}

using Names = std::set<std::string>;

Names names_of_file(const Directory& directory, const std::string& path) {
  Names names;
  auto state = open_state(directory, path);
  if (!state) return names;
  auto entries = entries_of(*state, path);
  if (!entries) return names;
  for (StateEntry& entry : *entries) names.insert(std::move(entry.fqn));
  return names;
}

bool share_none(const std::vector<Names>& names) {
  std::size_t count = 0;
  Names all;
  for (const Names& one : names) {
    count += one.size();
    all.insert(one.begin(), one.end());
  }
  return all.size() == count;
}

// The newest of steps or copies of one model; nothing where the names do not say that they are.
std::optional<std::string> newest_of(const std::vector<std::string>& paths) {
  std::set<std::string> patterns;
  std::string last, numbered;
  for (const std::string& path : paths) {
    const std::string stem = torch_stem(path);
    if (has_word(stem, kPartWords)) return std::nullopt;
    if (has_word(stem, kLastWords)) {
      if (!last.empty()) return std::nullopt;
      last = path;
    } else {
      patterns.insert(pattern_of(stem));
      numbered = path;
    }
  }
  // One that has no number is known beside the last: "best.pt".
  if (!last.empty()) return last;
  if (patterns.size() != 1 || patterns.contains("")) return std::nullopt;
  return numbered;
}

}  // namespace

std::string torch_stem(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

Result<bool> has_torch_several(const DirectoryLook& look) {
  SHW_TRY(auto weights, torch_weights_in(look));
  return weights.size() > 1;
}

Result<std::optional<TorchSeveral>> torch_several_in(const DirectoryLook& look) {
  SHW_TRY(auto weights, torch_weights_in(look));
  if (weights.size() < 2) return std::nullopt;
  std::vector<Names> names;
  for (const std::string& path : weights) names.push_back(names_of_file(look.directory(), path));
  TorchSeveral several;
  if (share_none(names)) {
    several.paths = std::move(weights);
    return several;
  }
  const bool are_alike = std::all_of(names.begin(), names.end(),
                                     [&](const Names& one) { return one == names.front(); });
  auto newest = are_alike ? newest_of(weights) : std::nullopt;
  if (!newest) {
    several.paths = std::move(weights);
    several.is_prefixed = true;
    return several;
  }
  several.paths = {*newest};
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(several.aside),
               [&](const std::string& path) { return path != *newest; });
  return several;
}

Finding told_several(const TorchSeveral& several) {
  const std::string& first = several.paths.front();
  std::string cause;
  if (!several.aside.empty())
    cause = fmt::format(
        "Opened {}, the last one by its name of {} files of one model. Not looked "
        "at: {}. A path to one of them opens that one.",
        first, several.aside.size() + 1, some_of(several.aside));
  else if (several.is_prefixed)
    cause = fmt::format(
        "{} files of torch.save lie here without an index, and some hold entries of "
        "one name: each has its file's name in front here ({}). Whether they are "
        "parts of one tensor or several models is not checked.",
        several.paths.size(), torch_stem(first) + ".NAME");
  else
    cause = fmt::format(
        "Opened {} files of torch.save as one checkpoint: no two of them hold an "
        "entry of one name. Without an index it is not known whether another file "
        "is missing.",
        several.paths.size());
  Finding finding = read_note(first, std::move(cause));
  finding.subjects = several.aside.empty() ? several.paths : several.aside;
  finding.evidence = {{"opened", static_cast<std::int64_t>(several.paths.size())},
                      {"left_aside", static_cast<std::int64_t>(several.aside.size())}};
  return finding;
}

}  // namespace shw
