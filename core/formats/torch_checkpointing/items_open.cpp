#include "core/formats/torch_checkpointing/items_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/top_file.h"
#include "core/formats/torch_checkpointing/items_files.h"
#include "core/formats/torch_checkpointing/items_tensors.h"
#include "core/formats/torch_checkpointing/items_writer.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr Format kItemsFormat = {
    .name = "torch-checkpointing",
    .title = "torch_checkpointing",
    .codec = &kZipRecordCodec,
    .traits = {.names_have_items = true},
};

// The written form has whole tensors; rank files that are read contain parts.
constexpr Format kItemsNewFormat = {
    .name = "torch-checkpointing",
    .title = "torch_checkpointing",
    .codec = &kZipRecordCodec,
    .writer = &kItemsWriter,
    .traits = {.has_one_piece_per_tensor = true, .names_have_items = true},
};

class ItemsReading {
 public:
  explicit ItemsReading(std::shared_ptr<const Directory> directory)
      : directory_(std::move(directory)), tensors_(builder_) {
    builder_.set_format(kItemsFormat);
    builder_.set_directory(directory_);
  }

  OpenedCheckpoint run(Progress* progress) {
    SHW_TRY(auto entries, directory_->list());
    if (directory_->stat(kItemsMetadata).kind == EntryKind::kFile) {
      SHW_TRY(metadata_, read_items_metadata(*directory_));
      builder_.file(kItemsMetadata);
    }
    const SavedFiles files = find_item_files(entries, metadata_ ? &*metadata_ : nullptr);
    if (progress != nullptr) progress->begin(Phase::kOpening, files.files.size(), false);
    for (const SavedFile& file : files.files) {
      if (is_cancelled(progress)) return cancelled_error();
      read_file(file);
      if (progress != nullptr) progress->add(1);
    }
    if (!is_read_ && error_) return tl::unexpected<Error>(std::move(*error_));
    tensors_.finish(metadata_ ? &*metadata_ : nullptr, files.ranks);
    report_folder_name(files);
    report_nested_save(entries);
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    return builder_.finish();
  }

 private:
  void read_file(const SavedFile& file) {
    const FileId id = builder_.file(file.path);
    // Adds the file as missing if it does not exist; JSON and raw bytes are not read.
    const bool is_read = file.path.ends_with(".pt") || file.path.ends_with(".safetensors");
    if (!file.is_there || !is_read) return;
    auto tensors = read_item_file(directory_, file.path, notes_);
    if (!tensors) {
      builder_.add_finding(bad_record_finding(
          file.path,
          fmt::format("The file {} cannot be read: {}.", file.path, tensors.error().message),
          tensors.error().place.offset));
      if (!error_) error_ = std::move(tensors).error();
      return;
    }
    is_read_ = true;
    const bool is_sharded =
        std::any_of(tensors->tensors.begin(), tensors->tensors.end(),
                    [](const TorchFileTensor& tensor) { return tensor.sharding.has_value(); });
    if (metadata_ && !file.is_recorded && is_sharded) sharded_unrecorded_.insert(file.item);
    tensors_.add({file.item, file.rank, file.path, id, file.is_recorded}, std::move(*tensors));
  }

  void note(std::string subject, Severity severity, std::string cause) {
    Finding finding = bad_record_finding(std::move(subject), std::move(cause));
    finding.severity = severity;
    builder_.add_finding(std::move(finding));
  }

  void report_folder_name(const SavedFiles& files) {
    const std::string& whole_name = directory_->name();
    const std::string name = whole_name.substr(whole_name.rfind('/') + 1);
    if (name.starts_with("tmp_"))
      note(name, Severity::kError,
           fmt::format("{} is the folder of an unfinished save: the library renames it to {} when "
                       "every rank is done. Missing data was never written.",
                       name, name.substr(4)));
    for (const std::string& path : files.outside)
      note(path, Severity::kError,
           fmt::format("metadata.pkl names the file {}, which is outside this folder. The library "
                       "would read it; Shardwright does not.",
                       path));
    if (!files.extra.empty()) {
      Finding finding = bad_record_finding(
          files.extra.front(),
          fmt::format("{} of ranks that this save did not have: {}. metadata.pkl lists {} ranks. "
                      "They come from an older save with the same name, and were not read.",
                      plural(files.extra.size(), "file"), short_list_text(files.extra),
                      files.ranks));
      finding.severity = Severity::kWarning;
      finding.subjects = files.extra;
      builder_.add_finding(std::move(finding));
    }
    if (!metadata_) {
      report_no_metadata();
      return;
    }
    for (const std::string& problem : metadata_->problems)
      note(kItemsMetadata, Severity::kError, "In metadata.pkl " + problem + ".");
    for (const auto& [item, saved] : metadata_->items) report_item_layouts(item, saved);
    for (const std::string& item : sharded_unrecorded_)
      note(item, Severity::kWarning,
           fmt::format("The files of item {} hold sharded tensors, but metadata.pkl has no record "
                       "of it. An asynchronous saver writes the metadata of its first save into "
                       "every later one. The item loads only on the same ranks.",
                       item));
  }

  // Reports a save inside a save: version 0.1.0 moved a second save of the same name into the
  // first.
  void report_nested_save(std::span<const Entry> entries) {
    for (const Entry& entry : entries) {
      const std::size_t slash = entry.path.find('/');
      if (slash == std::string::npos || !entry.path.starts_with("tmp_") ||
          entry.path.substr(slash + 1) != kItemsMetadata)
        continue;
      const std::string folder = entry.path.substr(0, slash);
      return note(folder, Severity::kWarning,
                  fmt::format("A second save to this name is inside it as {}: version 0.1.0 moved "
                              "it there instead of renaming it. The older one was opened, and "
                              "loads use it too. The path {} opens the newer one.",
                              folder, folder));
    }
  }

  void report_item_layouts(const std::string& item, const SavedItem& saved) {
    if (!saved.twice.empty())
      note(item + "." + saved.twice.front(), Severity::kError,
           fmt::format("Two paths of item {} have the same name, {}: in the safetensors format the "
                       "second overwrites the first, whose bytes are lost.",
                       item, short_list_text(saved.twice)));
    for (const auto& [rank, layout] : saved.layouts) {
      if (!layout.names_class) continue;
      note(kItemsMetadata, Severity::kWarning,
           fmt::format("metadata.pkl names a class for the JSON of item {}: the library imports "
                       "its module when it reads the metadata. Shardwright imports nothing.",
                       item));
      return;
    }
  }

  void report_no_metadata() {
    note(kItemsMetadata, Severity::kInfo,
         "There is no metadata.pkl: either no item has a resharder, or this is not the first save "
         "of a synchronous manager, which writes it once. It loads only on the same ranks. Mesh "
         "and placements were taken from the rank files.");
  }

  std::shared_ptr<const Directory> directory_;
  CheckpointBuilder builder_;
  ItemsTensors tensors_;
  std::optional<ItemsMetadata> metadata_;
  PickleFindings notes_;
  std::optional<Error> error_;
  bool is_read_ = false;
  std::set<std::string> sharded_unrecorded_;  // names of items
};

// Recognises rank files without metadata.pkl: the pickle, which is the first record, names
// DTensors.
Result<bool> has_dtensor_files(const DirectoryContents& look) {
  constexpr std::uint64_t kPickleBegin = 16 << 10;
  SHW_TRY(auto entries, look.entries());
  for (const Entry& entry : entries) {
    const auto name = is_top_file(entry) ? parse_item_file(entry.path) : std::nullopt;
    // Excludes file names that only verl uses.
    if (!name || name->rank != 0 || !entry.path.ends_with(".pt") ||
        name->item.find("_world_size_") != std::string::npos)
      continue;
    SHW_TRY(Bytes first, look.first_bytes(entry.path, kPickleBegin));
    const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
    if (text.starts_with("PK\3\4archive/data.pkl") ||
        (text.starts_with("PK\3\4") && text.find("archive/data.pkl") < 64)) {
      if (text.find("torch.distributed.tensor") != std::string_view::npos) return true;
    }
  }
  return false;
}

Result<bool> recognises_items(const DirectoryContents& look) {
  if (look.entry(kItemsMetadata).kind == EntryKind::kFile) {
    SHW_TRY(Bytes first, look.first_bytes(kItemsMetadata, 64));
    if (is_items_metadata(first)) return true;
  }
  return has_dtensor_files(look);
}

FileRole items_file_role(std::string_view file) {
  return file == kItemsMetadata ? FileRole::kCheckpoint : FileRole::kNothing;
}

}  // namespace

OpenedCheckpoint open_items(std::shared_ptr<const Directory> directory, Progress* progress) {
  return ItemsReading(std::move(directory)).run(progress);
}

constexpr FormatRow kTorchCheckpointingNewRow = {
    .format = &kItemsNewFormat,
    .sign = "metadata.pkl",
};
constexpr FormatRow kTorchCheckpointingRow = {
    .format = &kItemsFormat,
    .sign = "metadata.pkl",
    .recognises = recognises_items,
    .open = open_items,
    .named = items_file_role,
};

}  // namespace shw
