#include "core/formats/run_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/chosen_file.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/folder_kind.h"
#include "core/io/list_names.h"
#include "core/io/remote/remote_path.h"

namespace shw {
namespace {

constexpr std::uint64_t kLongestTracker = 4096;

bool is_tracker_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Text of a tracker file; empty if there is none.
std::string read_tracker_file(const DirectoryContents& look, const std::string& name) {
  const Entry entry = look.entry(name);
  if (entry.kind != EntryKind::kFile || entry.size == 0 || entry.size > kLongestTracker) return {};
  auto bytes = look.first_bytes(name, entry.size);
  if (!bytes) return {};
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  while (!text.empty() && is_tracker_space(text.back())) text.pop_back();
  std::size_t first = 0;
  while (first < text.size() && is_tracker_space(text[first])) ++first;
  text.erase(0, first);
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::string_view first_path_part(std::string_view path) {
  return path.substr(0, path.find('/'));
}

// The top-level folders, and which contain checkpoints, complete or not.
struct TopFolders {
  NaturalSet all{&natural_less};
  NaturalSet checkpoints{&natural_less};
};

TopFolders top_folders(std::span<const Entry> entries, std::span<const FormatRow> rows) {
  TopFolders top;
  for (const Entry& entry : entries) {
    if (entry.path.find('/') != std::string::npos) top.all.emplace(first_path_part(entry.path));
  }
  for (const std::string& folder : folders_with_checkpoints(entries, rows))
    top.checkpoints.emplace(first_path_part(folder));
  // Levanter and T5X keep an array of zarr in a folder of each step, and no index of them.
  for (const Entry& entry : entries) {
    const bool is_array = entry.path.ends_with("/.zarray") || entry.path.ends_with("/zarr.json");
    const bool is_below = std::count(entry.path.begin(), entry.path.end(), '/') > 1;
    if (is_array && is_below) top.checkpoints.emplace(first_path_part(entry.path));
  }
  const IncompleteSubfolders broken = incomplete_subfolders(entries, rows);
  for (const std::string& folder : broken.unfinished)
    top.checkpoints.emplace(first_path_part(folder));
  return top;
}

// A folder that a tracker file names.
struct TrackedFolder {
  std::string tracker, folder;
  bool is_there = false;
};

std::optional<TrackedFolder> tracked_folder(const DirectoryContents& look, const TopFolders& top) {
  for (const char* tracker : {"latest", "latest_checkpointed_iteration.txt", "latest_universal"}) {
    const std::string text = read_tracker_file(look, tracker);
    if (text.empty() || text.find('/') != std::string::npos || !is_safe_relative_path(text))
      continue;
    std::vector<std::string> names = {text};
    if (is_all_digits(text) && text.size() <= 18)
      names = {fmt::format("iter_{:07}", std::stoll(text)), "global_step_" + text, text};
    for (const std::string& name : names) {
      if (top.all.contains(name)) return TrackedFolder{tracker, name, true};
    }
    return TrackedFolder{tracker, names.front(), false};
  }
  return std::nullopt;
}

// What a run of Megatron-LM or DeepSpeed that goes on from here does without a tracker file.
void report_lost_tracker_file(const DirectoryContents& look, ChosenStep& chosen) {
  const bool is_megatron = chosen.folder.starts_with("iter_");
  constexpr std::string_view kDeepspeed = "global_step";
  const bool is_deepspeed = chosen.folder.starts_with(kDeepspeed) &&
                            is_all_digits(chosen.folder.substr(kDeepspeed.size()));
  if (!is_megatron && !is_deepspeed) return;
  const std::string tracker = is_megatron ? "latest_checkpointed_iteration.txt" : "latest";
  const Entry entry = look.entry(tracker);
  if (entry.kind != EntryKind::kMissing && (entry.kind != EntryKind::kFile || entry.size != 0))
    return;
  chosen.is_tracker_empty = entry.kind == EntryKind::kFile;
  chosen.tracker_note =
      fmt::format("{} {}: {} finds no step by itself, and {}.", tracker,
                  chosen.is_tracker_empty ? "is empty" : "is not there",
                  is_megatron ? "Megatron-LM" : "DeepSpeed",
                  is_megatron ? "starts from random weights" : "loads nothing, without an error");
}

// The folder with the greatest number, among names equal up to
// numbers.
std::optional<std::string> newest_folder_of_one_pattern(const TopFolders& top) {
  std::map<std::string, std::string> newest;
  for (const std::string& folder : top.checkpoints) {
    // torch_checkpointing's name of a save until every rank has finished.
    if (folder.starts_with("tmp_") && top.checkpoints.size() > 1) continue;
    const std::string pattern = step_pattern(folder);
    if (!pattern.empty()) newest[pattern] = folder;  // in natural order, so the last one stays
  }
  if (newest.size() != 1) return std::nullopt;
  return newest.begin()->second;
}

// Folders of the same run as `chosen` and later than it, with a trainer's files at their top.
std::vector<std::string> steps_without_model(std::span<const Entry> entries, const TopFolders& top,
                                             const std::string& chosen) {
  const std::string pattern = step_pattern(chosen);
  NaturalSet later{&natural_less};
  if (pattern.empty()) return {};
  for (const Entry& entry : entries) {
    const std::string folder(first_path_part(entry.path));
    const std::size_t slash = entry.path.find('/');
    if (slash == std::string::npos || entry.path.find('/', slash + 1) != std::string::npos)
      continue;
    if (trainer_file(entry.path) == TrainerFile::kNone || top.checkpoints.contains(folder))
      continue;
    if (step_pattern(folder) == pattern && natural_less(chosen, folder)) later.insert(folder);
  }
  return {later.begin(), later.end()};
}

// Notes that the newest step has no trainer_state.json and an earlier one has. transformers'
// Trainer writes that file after the weights, the optimizer and the random states, and a resumed
// run reads it first. The weights alone look complete.
void note_unfinished_trainer_step(std::span<const Entry> entries, const TopFolders& top,
                                  ChosenStep& chosen) {
  constexpr std::string_view kLast = "trainer_state.json";
  const std::string pattern = step_pattern(chosen.folder);
  if (pattern.empty()) return;
  NaturalSet finished{&natural_less};
  for (const Entry& entry : entries) {
    const std::string folder(first_path_part(entry.path));
    if (entry.path != folder + "/" + std::string(kLast)) continue;
    if (top.checkpoints.contains(folder) && step_pattern(folder) == pattern)
      finished.insert(folder);
  }
  if (finished.empty() || finished.contains(chosen.folder)) return;
  chosen.last_file = kLast;
  chosen.newest_finished = *finished.rbegin();
}

// True if there is a file below, or something deep; an error if a folder may not be read.
Result<bool> holds_a_file(const Directory& directory, const std::string& folder, int depth = 0) {
  constexpr int kDeepest = 3;
  SHW_TRY(const auto names, names_in(directory.name() + "/" + folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const bool is_folder = directory.stat(path).kind == EntryKind::kDirectory;
    if (!is_folder || depth == kDeepest) return true;
    SHW_TRY(const bool is_below, holds_a_file(directory, path, depth + 1));
    if (is_below) return true;
  }
  return false;
}

// Later folders of the run in which nothing was listed, because no file is in them. An error if one
// may not be read: it may be the newest step.
Result<std::vector<std::string>> empty_later_steps(const Directory& directory,
                                                   const TopFolders& top,
                                                   const std::string& chosen) {
  const std::string pattern = step_pattern(chosen);
  std::vector<std::string> empty;
  if (pattern.empty() || is_remote(directory.name())) return empty;
  const auto names = names_in(directory.name());
  if (!names) return empty;  // not a folder of a file system
  for (const std::string& name : *names) {
    if (top.all.contains(name) || step_pattern(name) != pattern || !natural_less(chosen, name) ||
        directory.stat(name).kind != EntryKind::kDirectory)
      continue;
    SHW_TRY(const bool has_file, holds_a_file(directory, name));
    if (!has_file) empty.push_back(name);
  }
  std::sort(empty.begin(), empty.end(), natural_less);
  return empty;
}

// True for "optimizer.bin" and similar at the top: subfolders are then parts of one step.
bool has_trainer_files(std::span<const Entry> entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && trainer_file(entry.path) != TrainerFile::kNone;
  });
}

bool has_step_folder(const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [](const std::string& folder) { return !step_pattern(folder).empty(); });
}

// The cache of Hugging Face's hub: refs/main names the folder in snapshots/ in use. It is not
// needed if there is only one snapshot.
std::optional<ChosenStep> hub_snapshot(const DirectoryContents& look,
                                       std::span<const Entry> entries) {
  constexpr std::string_view kSnapshots = "snapshots/";
  std::set<std::string> revisions;
  for (const Entry& entry : entries) {
    if (!entry.path.starts_with(kSnapshots)) continue;
    const std::string_view below = std::string_view(entry.path).substr(kSnapshots.size());
    if (below.find('/') != below.npos) revisions.emplace(first_path_part(below));
  }
  if (revisions.size() < 2) return std::nullopt;
  const std::string revision = read_tracker_file(look, "refs/main");
  if (!revisions.contains(revision)) return std::nullopt;
  ChosenStep chosen{std::string(kSnapshots) + revision, "which refs/main names"};
  for (const std::string& other : revisions) {
    if (other != revision) chosen.aside.push_back(std::string(kSnapshots) + other);
  }
  return chosen;
}

}  // namespace

Result<std::optional<ChosenStep>> chosen_step(const DirectoryContents& look,
                                              std::span<const FormatRow> rows) {
  SHW_TRY(auto entries, look.entries());
  if (auto snapshot = hub_snapshot(look, entries)) return snapshot;
  const TopFolders top = top_folders(entries, rows);
  const auto tracked = tracked_folder(look, top);
  std::optional<ChosenStep> chosen;
  if (tracked && tracked->is_there) {
    chosen = ChosenStep{tracked->folder, fmt::format("which {} names", tracked->tracker)};
  } else if (auto newest = newest_folder_of_one_pattern(top)) {
    chosen = ChosenStep{*newest, top.checkpoints.size() == 1 ? "the only step in this folder"
                                                             : "the newest step by its number"};
  } else if (top.checkpoints.size() == 1) {
    chosen = ChosenStep{*top.checkpoints.begin(), "the only checkpoint in this folder"};
  }
  if (!chosen) return chosen;
  chosen->aside = names_except(top.checkpoints, chosen->folder);
  if (!tracked) {
    report_lost_tracker_file(look, *chosen);
    chosen->without_model = steps_without_model(entries, top, chosen->folder);
    note_unfinished_trainer_step(entries, top, *chosen);
    SHW_TRY(chosen->empty, empty_later_steps(look.directory(), top, chosen->folder));
  }
  if (tracked && !tracked->is_there)
    chosen->gone =
        fmt::format("{} names {}, which is not there", tracked->tracker, tracked->folder);
  return chosen;
}

std::vector<FolderPart> folder_parts(std::span<const Entry> entries,
                                     std::span<const FormatRow> rows) {
  auto has = [&](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& entry) { return entry.path == name; });
  };
  std::vector<FolderPart> parts;
  std::vector<std::string> models, optimizers;
  for (const std::string& folder : folders_with_checkpoints(entries, rows)) {
    if (folder.find('/') != std::string::npos) continue;
    const bool is_optimizer = folder.find("optim") != std::string::npos;
    (is_optimizer ? optimizers : models).push_back(folder);
    parts.push_back({folder, folder + "."});
  }
  if (has("model_index.json")) return parts;
  if (models.size() == 2 && optimizers.empty() && models[1] == models[0] + "_ema") return parts;
  // PEFT saves each adapter of a model in a folder of its name.
  const bool are_adapters = std::ranges::all_of(
      models, [&](const std::string& folder) { return has(folder + "/adapter_config.json"); });
  if (models.size() > 1 && (has_trainer_files(entries) || (optimizers.empty() && are_adapters)) &&
      !has_step_folder(models))
    return parts;
  // Models and optimizers are paired by name.
  if (models.size() != optimizers.size() || models.empty()) return {};
  if (models.size() == 1) {
    for (FolderPart& part : parts) part.prefix.clear();
  }
  return parts;
}

}  // namespace shw
