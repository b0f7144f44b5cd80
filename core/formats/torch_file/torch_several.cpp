#include "core/formats/torch_file/torch_several.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/natural_order.h"
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

constexpr std::size_t kMostSeveral = 4096;

struct Names {
  std::set<std::string> all, tensors;
};

Names names_of_file(const Directory& directory, const std::string& path) {
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
  for (const std::string& path : paths) names.push_back(names_of_file(directory, path));
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
        torch_file_role(entry.path) == FileRole::kAlone || is_numbered_save(entry.path);
    if (!is_top_file(entry) || !is_named || trainer_file(entry.path) != TrainerFile::kNone)
      continue;
    SHW_TRY(bool is_archive, is_torch_archive(look, entry.path));
    if (is_archive) weights.push_back(entry.path);
    if (weights.size() > kMostSeveral) return std::vector<std::string>{};
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
std::optional<std::string> newest_of_model(const std::vector<std::string>& weights,
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
  const auto newest = newest_of_model(weights, names);
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

Finding torch_file_group_finding(const TorchFileGroup& several) {
  const std::string& first = several.paths.front();
  std::string cause;
  if (!several.aside.empty()) return newest_file_finding(several.paths, several.aside);
  if (several.is_prefixed)
    cause = fmt::format(
        "{} files of torch.save are here without an index, and some hold entries of one name: each "
        "has its file's name in front here ({}). Whether they are parts of one tensor or several "
        "models is not checked.",
        several.paths.size(), torch_stem(first) + ".NAME");
  else
    cause = fmt::format(
        "Opened {} files of torch.save as one checkpoint: no two of them hold an "
        "entry of one name. Without an index it is not known whether another file "
        "is missing.",
        several.paths.size());
  Finding finding = how_read_finding(first, std::move(cause));
  finding.subjects = several.paths;
  finding.evidence = {{"opened", static_cast<std::int64_t>(several.paths.size())},
                      {"left_aside", std::int64_t{0}}};
  return finding;
}

}  // namespace shw
