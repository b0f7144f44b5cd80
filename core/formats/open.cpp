#include "core/formats/open.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/chosen_file.h"
#include "core/formats/chosen_step.h"
#include "core/formats/common/first_bytes.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/part_names.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/truncated_archives.h"
#include "core/formats/component_config.h"
#include "core/formats/folder_kind.h"
#include "core/formats/joined_folders.h"
#include "core/formats/module_list.h"
#include "core/formats/numbered_models.h"
#include "core/formats/open_nested.h"
#include "core/formats/refused_folder.h"
#include "core/formats/run_folder.h"
#include "core/formats/single_file_directory.h"
#include "core/formats/single_index_directory.h"
#include "core/formats/subfolder_directory.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"
#include "core/model/builder.h"

namespace shw {
namespace {

using Entries = std::vector<Entry>;
using Rows = std::span<const FormatRow>;

// Reports placeholders of files (Git LFS pointers).
Status check_is_downloaded(const Directory& directory, std::span<const Entry> entries, Rows rows) {
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    const bool is_named = std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
      return row.named != nullptr && row.named(entry.path) != FileRole::kNothing;
    });
    if (!is_named) continue;
    if (auto source = directory.open(entry.path)) SHW_CHECK(check_is_no_lfs_pointer(**source));
  }
  return {};
}

// The only file with the name of a checkpoint, which may be a pipe or a dangling link, and its row.
struct SingleCheckpointFile {
  const FormatRow* row = nullptr;
  std::string path = {};
};
SingleCheckpointFile find_only_checkpoint_file(std::span<const Entry> entries, Rows rows) {
  SingleCheckpointFile only;
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kDirectory || !is_at_top(entry.path)) continue;
    for (const FormatRow& row : rows) {
      if (row.named == nullptr || row.named(entry.path) != FileRole::kSingleFile) continue;
      if (only.row != nullptr) return {};
      only = {&row, entry.path};
      break;
    }
  }
  return only;
}

OpenedCheckpoint open_only_file(const std::shared_ptr<const Directory>& around,
                                const SingleCheckpointFile& only, Progress* progress) {
  auto opened = only.row->open(std::make_shared<SingleFileDirectory>(around, only.path), progress);
  // For common file names, damage may only mean that it is another kind of file.
  if (!opened && opened.error().kind == ErrorKind::kDamaged && only.row->names_are_common)
    opened.error().kind = ErrorKind::kUnsupported;
  return opened;
}

std::string unsupported_format_text(const UnsupportedFormat& format) {
  return "is " + std::string(format.title) + ", which is not supported";
}

// The error for a folder of unknown format, which describes its contents.
OpenedCheckpoint refuse(const std::shared_ptr<const Directory>& around,
                        std::span<const Entry> entries, Rows rows, Progress* progress) {
  const Directory& directory = *around;
  auto unsupported = [&](const std::string& what, std::string_view advice) {
    return fail(ErrorKind::kUnsupported, what, {directory.name()}, std::string(advice));
  };
  auto below = checkpoints_below(entries, rows);
  auto is_pipeline = [](const Entry& entry) { return entry.path == "model_index.json"; };
  if (!below.empty())
    return unsupported(fmt::format("{} {} {} in subfolders, but is not a checkpoint itself",
                                   std::any_of(entries.begin(), entries.end(), is_pipeline)
                                       ? "is a pipeline of diffusers: it holds"
                                       : "holds",
                                   below.size(), below.size() == 1 ? "checkpoint" : "checkpoints"),
                       advice_to_open_one_of(directory, entries, below, rows));
  for (const FormatRow& row : rows) {
    auto unfinished = row.unfinished == nullptr ? std::nullopt : row.unfinished(entries);
    if (unfinished) return tl::unexpected<Error>(std::move(*unfinished));
  }
  SHW_CHECK(check_is_downloaded(directory, entries, rows));
  const UnsupportedFormat* other = unsupported_format_of(entries);
  // The error of the only candidate file is more helpful.
  if (const SingleCheckpointFile only = find_only_checkpoint_file(entries, rows);
      only.row != nullptr &&
      (other == nullptr ||
       (other->is_adjacent_file && !other->is_never_torch && other->matches(only.path, only.path))))
    return open_only_file(around, only, progress);
  if (other != nullptr) return unsupported(unsupported_format_text(*other), other->advice);
  // Files such as "combined.pt" are models only by their suffix.
  if (const auto likely = folders_with_checkpoints(entries, rows); !likely.empty())
    return unsupported(fmt::format("holds no checkpoint; files that may be models are in {}",
                                   short_list_text(likely)),
                       advice_to_open_one_of(directory, entries, likely, rows));
  if (entries.empty())
    return unsupported("holds no files: there is no checkpoint here",
                       "If a save is running, try again when it has finished. For subfolders that "
                       "are links or not readable, give their own path.");
  return unsupported(
      "holds no checkpoint that Shardwright recognises, only " + names_at_top(entries),
      "It looks for one of these: " + recognised_files_text(rows) +
          ". Subfolders that are links were not searched: give their own path.");
}

OpenedCheckpoint open_by_index(const FormatRow& row, std::shared_ptr<const Directory> around,
                               Rows rows, Progress* progress) {
  DirectoryContents look(*around);
  SHW_TRY(bool recognised, row.recognises(look));
  if (recognised) return row.open(std::move(around), progress);
  SHW_TRY(auto entries, look.entries());
  return refuse(around, entries, rows, progress);
}

// An unfinished save of another format: the recognised files (such as Megatron's common.pt) belong
// to it.
Result<std::optional<Error>> unfinished_save_in_folder(const FormatRow& row,
                                                       const DirectoryContents& look, Rows rows) {
  if (!row.names_are_common) return std::nullopt;  // a checkpoint of its own
  for (const FormatRow& other : rows) {
    if (other.unfinished == nullptr) continue;
    SHW_TRY(auto entries, look.entries());
    Entries here;
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(here),
                 [](const Entry& entry) { return is_at_top(entry.path); });
    if (auto unfinished = other.unfinished(here)) return unfinished;
  }
  return std::nullopt;
}

// Adds a note about checkpoints in subfolders, because a stray file is not the whole run. Skipped
// if an index defines the checkpoint.
OpenedCheckpoint with_other_checkpoints_below(std::shared_ptr<const Checkpoint> opened,
                                              const FormatRow& row, const DirectoryContents& look,
                                              Rows rows) {
  if (opened->format().traits.has_index) return opened;
  SHW_TRY(auto entries, look.entries());
  auto others = other_checkpoints_below(entries, *row.format, rows);
  return others ? CheckpointBuilder::with_finding(*opened, std::move(*others)) : opened;
}

OpenedCheckpoint open_parts(const std::shared_ptr<const Directory>& around,
                            std::vector<JoinedPart> parts, const std::vector<FolderPart>& folders,
                            Rows rows, Progress* progress) {
  for (const FolderPart& folder : folders) {
    auto inside = std::make_shared<SubfolderDirectory>(around, folder.folder);
    auto opened = open_checkpoint(inside, progress, rows);
    if (!opened) {
      prefix_folder_to_error(opened.error(), folder.folder);
      return opened;
    }
    parts.push_back({with_config_findings(std::move(*opened), DirectoryContents(*inside),
                                          FolderRole::kComponent),
                     folder.folder, folder.prefix});
  }
  return join_folders(around, parts);
}

// Weight files at the top of a diffusers pipeline: one of all components, for other programs.
std::vector<std::string> weights_at_top(std::span<const Entry> entries, Rows rows) {
  std::vector<std::string> weights;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    const bool is_weights = std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
      return row.named != nullptr && row.named(entry.path) == FileRole::kSingleFile;
    });
    if (is_weights) weights.push_back(entry.path);
  }
  return weights;
}

Finding unopened_files_finding(std::vector<std::string> files) {
  Finding finding{.rule = "how-read", .severity = Severity::kInfo};
  finding.cause = fmt::format("{} at the top of this folder {} not opened. {} path opens {}.",
                              short_list_text(files), files.size() == 1 ? "was" : "were",
                              files.size() == 1 ? "Its" : "A", files.size() == 1 ? "it" : "one");
  finding.subjects = std::move(files);
  return finding;
}

// Opens the components of a pipeline, whatever weight files are next to its model_index.json; null
// if there are none.
OpenedCheckpoint open_pipeline(const std::shared_ptr<const Directory>& around,
                               const DirectoryContents& look, Rows rows, Progress* progress) {
  if (look.entry("model_index.json").kind != EntryKind::kFile)
    return std::shared_ptr<const Checkpoint>();
  SHW_TRY(auto entries, look.entries());
  const auto parts = folder_parts(entries, rows);
  if (parts.empty()) return std::shared_ptr<const Checkpoint>();
  SHW_TRY(auto opened, open_parts(around, {}, parts, rows, progress));
  opened = with_component_findings(std::move(opened), look, rows);
  auto aside = weights_at_top(entries, rows);
  return aside.empty()
             ? opened
             : CheckpointBuilder::with_finding(*opened, unopened_files_finding(std::move(aside)));
}

// Opens the newest step or the joined parts below a folder; null if there are neither.
OpenedCheckpoint open_step_or_parts(const std::shared_ptr<const Directory>& around,
                                    const DirectoryContents& look, Rows rows, Progress* progress) {
  SHW_TRY(auto entries, look.entries());
  auto parts = module_parts(look, entries, rows);
  if (parts.size() < 2) parts = folder_parts(entries, rows);
  if (!parts.empty()) return open_parts(around, {}, parts, rows, progress);
  SHW_TRY(auto chosen, chosen_step(look, rows));
  std::shared_ptr<const Directory> inside;
  const bool is_step_folder = chosen.has_value();
  if (chosen) {
    inside = std::make_shared<SubfolderDirectory>(around, chosen->folder);
  } else if (chosen = chosen_file(entries); chosen) {
    inside = std::make_shared<SingleFileDirectory>(around, chosen->folder);
  }
  if (!chosen) return std::shared_ptr<const Checkpoint>();
  auto opened = open_checkpoint(inside, progress, rows);
  if (!opened) {
    // A package of another library has files with suffixes of torch in its folders.
    const UnsupportedFormat* other = unsupported_format_of(entries);
    if (other != nullptr && other->is_never_torch)
      return fail(ErrorKind::kUnsupported, unsupported_format_text(*other), {around->name()},
                  std::string(other->advice));
    const std::string run = is_step_folder ? around->name() : std::string();
    return newest_step_error(std::move(opened).error(), *chosen, run);
  }
  if (auto cut = is_step_folder ? std::nullopt : truncated_archives_finding(*around, chosen->aside))
    opened = CheckpointBuilder::with_finding(**opened, std::move(*cut));
  if (auto unfinished = unfinished_step_finding(*chosen))
    opened = CheckpointBuilder::with_finding(**opened, std::move(*unfinished));
  return CheckpointBuilder::with_finding(**opened, chosen_step_finding(*chosen));
}

OpenedCheckpoint open_in_subfolder(const std::shared_ptr<const Directory>& around,
                                   const DirectoryContents& look, Rows rows, Progress* progress) {
  SHW_TRY(auto opened, open_step_or_parts(around, look, rows, progress));
  if (opened == nullptr) return opened;
  return with_module_findings(std::move(opened), look, rows);
}

// Files of training above its steps (scheduler.pt, rng_state.pth) are not models.
bool is_model_file(const Checkpoint& checkpoint) {
  constexpr std::string_view kModelWords[] = {"model", "adapter", "consolidated", "weights"};
  for (const FileRow& file : checkpoint.files()) {
    if (!file.referenced) continue;
    for (std::string_view word : kModelWords) {
      if (file.path.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

// Adds a note about a file at the top that is ignored.
OpenedCheckpoint with_ignored_file_note(const Checkpoint& below, const Checkpoint& top) {
  std::vector<std::string> files;
  for (const FileRow& file : top.files()) {
    if (file.referenced) files.push_back(file.path);
  }
  return CheckpointBuilder::with_finding(below, unopened_files_finding(std::move(files)));
}

// Adds modules whose weights are in subfolders.
OpenedCheckpoint add_subfolder_modules(const std::shared_ptr<const Directory>& around,
                                       std::shared_ptr<const Checkpoint> opened,
                                       const DirectoryContents& look, Rows rows,
                                       Progress* progress) {
  if (look.entry("modules.json").kind != EntryKind::kFile) return opened;
  SHW_TRY(auto entries, look.entries());
  const auto modules = module_parts(look, entries, rows);
  if (!modules.empty()) {
    SHW_TRY(opened, open_parts(around, {{std::move(opened), "", ""}}, modules, rows, progress));
  }
  return with_module_findings(std::move(opened), look, rows);
}

std::pair<std::string, std::string> split(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

OpenedCheckpoint open_folder(std::shared_ptr<const Directory> directory, Progress* progress,
                             Rows rows) {
  DirectoryContents look(*directory);
  SHW_TRY(auto pipeline, open_pipeline(directory, look, rows, progress));
  if (pipeline != nullptr) return pipeline;
  SHW_TRY(auto saved, open_state_of_models(directory, look, progress));
  if (saved != nullptr) return saved;
  for (const FormatRow& row : rows) {
    if (row.recognises == nullptr) continue;
    SHW_TRY(bool recognised, row.recognises(look));
    if (!recognised) continue;
    SHW_TRY(auto unfinished, unfinished_save_in_folder(row, look, rows));
    if (unfinished) return tl::unexpected<Error>(std::move(*unfinished));
    auto opened = row.open(directory, progress);
    if (opened && row.names_are_common && !is_model_file(**opened)) {
      SHW_TRY(auto below, open_in_subfolder(directory, look, rows, progress));
      if (below != nullptr) return with_ignored_file_note(*below, **opened);
    }
    if (opened) {
      opened = with_config_findings(std::move(*opened), look, FolderRole::kWhole);
      SHW_TRY(auto all, add_subfolder_modules(directory, std::move(*opened), look, rows, progress));
      return with_other_checkpoints_below(std::move(all), row, look, rows);
    }
    if (opened.error().kind == ErrorKind::kUnsupported) {
      SHW_TRY(auto beside, look.entries());
      SHW_TRY(auto models, open_numbered_models(directory, beside, progress));
      if (models != nullptr) return models;
    }
    if (opened.error().kind != ErrorKind::kUnsupported || !row.names_are_common) return opened;
    // Files of training (training_args.bin) above its steps.
    SHW_TRY(auto entries, look.entries());
    if (checkpoints_below(entries, rows).empty()) return opened;
    break;
  }
  SHW_TRY(auto below, open_in_subfolder(directory, look, rows, progress));
  if (below != nullptr) return below;
  SHW_TRY(auto entries, look.entries());
  return refuse(directory, entries, rows, progress);
}

}  // namespace

OpenedCheckpoint open_checkpoint(std::shared_ptr<const Directory> directory, Progress* progress,
                                 std::span<const FormatRow> rows) {
  auto opened = open_folder(directory, progress, rows);
  if (!opened) add_unsafe_pickles(opened.error(), *directory);
  return opened;
}

OpenedCheckpoint open_nested(std::shared_ptr<const Directory> inside, Progress* progress) {
  return open_checkpoint(std::move(inside), progress);
}

OpenedCheckpoint open_nested(const std::shared_ptr<const Directory>& directory,
                             const std::string& path) {
  return open_checkpoint(std::make_shared<SingleFileDirectory>(directory, path), nullptr);
}

namespace {

// Notes that the file is one of several.
OpenedCheckpoint add_part_note_finding(const std::string& name, OpenedCheckpoint opened) {
  const std::size_t dot = name.rfind('.');
  if (!opened || dot == name.npos) return opened;
  const auto part = parse_part_name(name, std::string_view(name).substr(dot));
  if (!part || part->count < 2 || name.ends_with(".gguf")) return opened;  // it says so itself
  return CheckpointBuilder::with_finding(
      **opened,
      how_read_finding(name, fmt::format("This is part {} of {}, opened without the others. To "
                                         "open the whole checkpoint, give the folder.",
                                         part->number, part->count)));
}

OpenedCheckpoint open_named_file(const std::shared_ptr<const Directory>& around,
                                 const std::string& parent, const std::string& name,
                                 const std::string& path, Progress* progress,
                                 std::span<const FormatRow> rows);

// Reports a failed server request as an error, because it would look like a missing file.
OpenedCheckpoint open_remote_checkpoint(const std::string& path, Progress* progress,
                                        std::span<const FormatRow> rows) {
  SHW_TRY(const OpenedRemote remote, open_remote(path));
  (void)remote.directory->take_lookup_error();  // of an earlier job
  auto opened = remote.file.empty() ? open_checkpoint(remote.directory, progress, rows)
                                    : open_named_file(remote.directory, remote.directory->name(),
                                                      remote.file, path, progress, rows);
  SHW_CHECK(remote.directory->take_lookup_error());
  return opened;
}

}  // namespace

OpenedCheckpoint open_checkpoint(const std::string& path, Progress* progress,
                                 std::span<const FormatRow> rows) {
  if (is_remote(path)) return open_remote_checkpoint(path, progress, rows);
  auto [parent, name] = split(path);
  bool is_file = false;
  std::shared_ptr<const Directory> around;
  if (auto opened = open_directory(parent); opened && is_safe_relative_path(name)) {
    around = *opened;
    EntryKind kind = around->stat(name).kind;
    is_file = kind == EntryKind::kFile;
    if (kind == EntryKind::kMissing)
      return fail(ErrorKind::kIo, "there is no such file or directory", {path});
    // A pipe, a device or a dangling link: opening reports it.
    if (kind == EntryKind::kOther || kind == EntryKind::kDanglingLink) {
      if (auto source = around->open(name); !source) {
        source.error().place.file = path;
        return tl::unexpected<Error>(std::move(source).error());
      }
    }
  }
  if (!is_file) {
    SHW_TRY(auto directory, open_directory(path));
    return open_checkpoint(std::move(directory), progress, rows);
  }
  auto opened = open_named_file(around, parent, name, path, progress, rows);
  if (!opened) add_unsafe_pickles(opened.error(), SingleFileDirectory(around, name));
  return opened;
}

namespace {

// Opens a file by the row of its name. Where other formats have such names too ("model.bin") and
// the row does not recognise the contents, a row without names of its own may.
OpenedCheckpoint open_single_file(const FormatRow& row,
                                  const std::shared_ptr<const Directory>& around,
                                  const std::string& name, Rows rows, Progress* progress) {
  auto alone = std::make_shared<SingleFileDirectory>(around, name);
  if (!row.names_are_common || row.recognises == nullptr) return row.open(alone, progress);
  const DirectoryContents look(*alone);
  SHW_TRY(bool is_own, row.recognises(look));
  for (const FormatRow& other : rows) {
    if (is_own || other.recognises == nullptr || other.named != nullptr) continue;
    if (!other.names_are_common) continue;
    SHW_TRY(bool recognised, other.recognises(look));
    if (recognised) return other.open(alone, progress);
  }
  return row.open(alone, progress);
}

OpenedCheckpoint open_named_file(const std::shared_ptr<const Directory>& around,
                                 const std::string& parent, const std::string& name,
                                 const std::string& path, Progress* progress,
                                 std::span<const FormatRow> rows) {
  for (const FormatRow& row : rows) {
    FileRole named = row.named == nullptr ? FileRole::kNothing : row.named(name);
    // An index defines the checkpoint, whatever else is there.
    if (named == FileRole::kCheckpoint && name.ends_with(kIndexSuffix))
      return open_by_index(row, std::make_shared<SingleIndexDirectory>(around, name), rows,
                           progress);
    if (named != FileRole::kNothing && row.companion != nullptr)
      return row.open(
          std::make_shared<SingleFileDirectory>(around, name, std::vector{row.companion(name)}),
          progress);
    if (named == FileRole::kCheckpoint) return open_checkpoint(around, progress, rows);
    if (named == FileRole::kSingleFile)
      return add_part_note_finding(name, open_single_file(row, around, name, rows, progress));
    if (named == FileRole::kPart)
      return fail(
          ErrorKind::kUnsupported,
          fmt::format("is only one data file of a checkpoint; its tensors are described in {}",
                      row.sign),
          {path}, "Open its folder instead: " + parent);
  }
  // Recognises a file by contents, whatever its name.
  auto alone = std::make_shared<SingleFileDirectory>(around, name);
  DirectoryContents look(*alone);
  for (const FormatRow& row : rows) {
    if (row.recognises == nullptr) continue;
    SHW_TRY(bool recognised, row.recognises(look));
    if (recognised && row.companion != nullptr)
      alone = std::make_shared<SingleFileDirectory>(around, name, std::vector{row.companion(name)});
    if (recognised) return row.open(std::move(alone), progress);
  }
  const std::vector<Entry> itself{{name, EntryKind::kFile}};
  const UnsupportedFormat* other = unsupported_format_of(itself);
  if (other != nullptr && !is_read_next_to_weights(name))
    return fail(ErrorKind::kUnsupported, unsupported_format_text(*other), {path},
                std::string(other->advice));
  SHW_TRY(Bytes first, look.first_bytes(name, kFirstBytes));
  return refused_file(path, parent, format_from_magic(first));
}

}  // namespace

OpenedCheckpoint open_to_compare(const std::string& path, Progress* progress) {
  auto opened = open_checkpoint(path, progress);
  if (opened) return opened;
  Error error = std::move(opened).error();
  std::string& file = error.place.file;
  const std::string inside_of = path + (path.ends_with('/') ? "" : "/");
  // "run" may have resolved to "run.safetensors".
  const bool as_typed =
      file.empty() || file.front() == '/' || file == path || file.starts_with(inside_of);
  // The user typed a file that represents its folder.
  if (!as_typed) file = path.ends_with("/" + file) ? path : inside_of + file;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace shw
