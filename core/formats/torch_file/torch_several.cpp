#include "core/formats/torch_file/torch_several.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/natural_order.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/chosen_file.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/newest_file.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/torch_file/open_state.h"
#include "core/formats/torch_file/torch_file_choice.h"

namespace shw {
namespace {

constexpr std::size_t kMaxSeveral = 4096;

struct Names {
  std::set<std::string> all, tensors;
};

Names tensor_names_of_torch_file(const Directory& directory, const std::string& path) {
  Names names;
  auto state = open_state(directory, path);
  if (!state) return names;
  auto entries = entries_of(*state, path);
  if (!entries) return names;
  for (StateEntry& entry : *entries) {
    if (is_tensor_call(state->tree, entry.value)) names.tensors.insert(entry.fqn);
    names.all.insert(std::move(entry.fqn));
  }
  return names;
}

bool have_disjoint_names(const std::vector<Names>& names) {
  std::size_t count = 0;
  std::set<std::string> all;
  for (const Names& one : names) {
    count += one.all.size();
    all.insert(one.all.begin(), one.all.end());
  }
  return all.size() == count;
}

std::vector<Names> names_of_files(const Directory& directory,
                                  const std::vector<std::string>& paths) {
  std::vector<Names> names;
  for (const std::string& path : paths)
    names.push_back(tensor_names_of_torch_file(directory, path));
  return names;
}

// The weight files at the top, in natural order.
Result<std::vector<std::string>> torch_weights_in(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  std::vector<std::string> weights;
  // Lightning's files are recognised by name.
  if (chosen_file(entries)) return weights;
  for (const Entry& entry : entries) {
    const bool is_named =
        torch_file_role(entry.path) == FileRole::kSingleFile || is_numbered_save(entry.path);
    if (!is_top_file(entry) || !is_named || trainer_file(entry.path) != TrainerFile::kNone)
      continue;
    SHW_TRY(bool is_archive, is_torch_archive(look, entry.path));
    if (is_archive) weights.push_back(entry.path);
    if (weights.size() > kMaxSeveral) return std::vector<std::string>{};
  }
  // SpeechBrain keeps a file per module. Steps of Lightning under names that do not count hold the
  // same entries.
  const bool has_ckpt = std::any_of(weights.begin(), weights.end(), [](const std::string& path) {
    return path.ends_with(".ckpt");
  });
  if (has_ckpt && !have_disjoint_names(names_of_files(look.directory(), weights)))
    return std::vector<std::string>{};
  std::sort(weights.begin(), weights.end(),
            [](const auto& a, const auto& b) { return natural_less(a, b); });
  return weights;
}

// True if all files have the tensors of the smallest file. Optimizer states and counters may be in
// some files only.
bool are_of_one_model(const std::vector<Names>& names) {
  const auto& least =
      std::min_element(names.begin(), names.end(), [](const Names& a, const Names& b) {
        return a.tensors.size() < b.tensors.size();
      })->tensors;
  return !least.empty() && std::all_of(names.begin(), names.end(), [&](const Names& one) {
    return std::includes(one.tensors.begin(), one.tensors.end(), least.begin(), least.end());
  });
}

// The newest of several files of one model; nullopt if the names do not tell, or if it cannot be
// read. Other files may be unreadable where two show that the files are steps.
std::optional<std::string> newest_weights_of_model(const std::vector<std::string>& weights,
                                                   const std::vector<Names>& names) {
  std::vector<Names> readable;
  std::copy_if(names.begin(), names.end(), std::back_inserter(readable),
               [](const Names& one) { return !one.all.empty(); });
  if (readable.size() < 2 || !are_of_one_model(readable)) return std::nullopt;
  auto newest = newest_by_name(weights);
  const auto at = newest ? std::find(weights.begin(), weights.end(), *newest) : weights.end();
  const bool is_read =
      at != weights.end() && !names[static_cast<std::size_t>(at - weights.begin())].all.empty();
  return is_read ? newest : std::nullopt;
}

// The newest of several saves of several files, such as nanochat's model_200.pt and
// optim_200_rank0.pt; nullopt if the names do not tell, or files of one name differ in tensors.
std::optional<TorchFileGroup> newest_save(const std::vector<std::string>& weights,
                                          const std::vector<Names>& names) {
  const auto saves = saves_by_name(weights);
  if (saves.empty()) return std::nullopt;
  auto names_of = [&](const std::string& path) -> const Names& {
    const auto at = std::find(weights.begin(), weights.end(), path);
    return names[static_cast<std::size_t>(at - weights.begin())];
  };
  TorchFileGroup several;
  several.paths = saves.back();
  std::vector<Names> chosen;
  for (const std::string& path : several.paths) chosen.push_back(names_of(path));
  for (std::size_t i = 0; i + 1 < saves.size(); ++i) {
    for (std::size_t file = 0; file < saves[i].size(); ++file) {
      if (names_of(saves[i][file]).tensors != chosen[file].tensors) return std::nullopt;
      several.aside.push_back(saves[i][file]);
    }
  }
  several.is_prefixed = !have_disjoint_names(chosen);
  return several;
}

// A file name cut at its numbers: "hf_model_0001_0.pt" has the texts "hf_model_", "_", ".pt".
struct NameAroundNumbers {
  std::vector<std::string_view> texts, numbers;
};

NameAroundNumbers cut_at_numbers(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  NameAroundNumbers out;
  for (std::size_t at = 0;;) {
    const std::size_t number = std::min(name.find_first_of(kDigits, at), name.size());
    out.texts.push_back(name.substr(at, number - at));
    if (number == name.size()) return out;
    at = std::min(name.find_first_not_of(kDigits, number), name.size());
    out.numbers.push_back(name.substr(number, at - number));
  }
}

// The one number in which all names differ, its place among the numbers of each; nullopt if they
// differ otherwise, or if it is not padded with zeros to one width, as parts of one save are.
std::optional<std::size_t> numbered_place(const std::vector<NameAroundNumbers>& names) {
  const NameAroundNumbers& first = names.front();
  std::optional<std::size_t> place;
  for (const NameAroundNumbers& name : names) {
    if (name.texts != first.texts) return std::nullopt;
    for (std::size_t i = 0; i < name.numbers.size(); ++i) {
      if (name.numbers[i] == first.numbers[i] || place == i) continue;
      if (place || name.numbers[i].size() != first.numbers[i].size()) return std::nullopt;
      place = i;
    }
  }
  const bool is_padded =
      place && first.numbers[*place].size() > 1 &&
      std::all_of(names.begin(), names.end(), [&](const NameAroundNumbers& name) {
        return name.numbers[*place].size() == first.numbers[*place].size();
      });
  return is_padded && first.numbers[*place].starts_with('0') ? place : std::nullopt;
}

// The names of files that are missing between the first and the last of a numbered row.
std::vector<std::string> missing_from_numbered_files(const std::vector<std::string>& paths) {
  std::vector<NameAroundNumbers> names;
  for (const std::string& path : paths) names.push_back(cut_at_numbers(path));
  const auto place = numbered_place(names);
  if (!place) return {};
  std::set<std::uint32_t> there;
  for (const NameAroundNumbers& name : names) {
    const auto number = parse_number<std::uint32_t>(name.numbers[*place]);
    if (!number) return {};
    there.insert(*number);
  }
  const std::uint32_t first = *there.begin(), last = *there.rbegin();
  // Numbered parts begin with 0 or 1. If more numbers are missing than present, the numbers are not
  // part numbers.
  if (first > 1 || last - first + 1 >= 2 * there.size()) return {};
  std::vector<std::string> gone;
  for (std::uint32_t number = first; number < last; ++number) {
    if (there.contains(number)) continue;
    const NameAroundNumbers& like = names.front();
    std::string name(like.texts.front());
    for (std::size_t i = 0; i < like.numbers.size(); ++i) {
      if (i == *place)
        name += fmt::format("{:0{}}", number, like.numbers[i].size());
      else
        name += like.numbers[i];
      name += like.texts[i + 1];
    }
    gone.push_back(std::move(name));
  }
  return gone;
}

}  // namespace

std::string torch_stem(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

Result<bool> has_torch_file_group(const DirectoryContents& look) {
  SHW_TRY(auto weights, torch_weights_in(look));
  return weights.size() > 1;
}

Result<std::optional<TorchFileGroup>> find_torch_file_group(const DirectoryContents& look) {
  SHW_TRY(auto weights, torch_weights_in(look));
  if (weights.size() < 2) return std::nullopt;
  const std::vector<Names> names = names_of_files(look.directory(), weights);
  TorchFileGroup several;
  if (have_disjoint_names(names)) {
    several.paths = std::move(weights);
    return several;
  }
  if (auto save = newest_save(weights, names)) return save;
  const auto newest = newest_weights_of_model(weights, names);
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

std::optional<Finding> missing_numbered_files_finding(const TorchFileGroup& several) {
  if (several.is_prefixed || !several.aside.empty()) return std::nullopt;
  const std::vector<std::string> gone = missing_from_numbered_files(several.paths);
  if (gone.empty()) return std::nullopt;
  Finding finding{.rule = "missing-file", .severity = Severity::kWarning, .subjects = gone};
  finding.cause = fmt::format(
      "{} {} missing: the {} of this folder are numbered from {} to {} as parts of one model, and "
      "{} "
      "number{} {} missing between them. The tensors of {} are not in the others.",
      short_list_text(gone), gone.size() == 1 ? "is" : "are", plural(several.paths.size(), "file"),
      several.paths.front(), several.paths.back(),
      gone.size() == 1 ? "one" : human_count(gone.size()), gone.size() == 1 ? "" : "s",
      gone.size() == 1 ? "is" : "are", gone.size() == 1 ? "it" : "they");
  finding.evidence = {{"count", static_cast<std::int64_t>(gone.size())},
                      {"opened", static_cast<std::int64_t>(several.paths.size())}};
  return finding;
}

Finding torch_file_group_finding(const TorchFileGroup& several) {
  const std::string& first = several.paths.front();
  std::string cause;
  if (!several.aside.empty()) return newest_file_finding(several.paths, several.aside);
  if (several.is_prefixed)
    cause = fmt::format(
        "{} torch.save files are here without an index, and some hold entries with equal names: "
        "each is listed with its file's name in front ({}). It is not checked whether they are "
        "parts of one tensor or several models.",
        several.paths.size(), torch_stem(first) + ".NAME");
  else
    cause = fmt::format(
        "Opened {} torch.save files as one checkpoint: no entry name occurs twice. Without an "
        "index it is not known whether a file is missing.",
        several.paths.size());
  Finding finding = how_read_finding(first, std::move(cause));
  finding.subjects = several.paths;
  finding.evidence = {{"opened", static_cast<std::int64_t>(several.paths.size())},
                      {"left_aside", std::int64_t{0}}};
  return finding;
}

}  // namespace shw
