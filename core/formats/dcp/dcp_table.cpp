// Detects and opens the three DCP formats.
#include "core/formats/dcp/dcp_table.h"

#include <algorithm>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_read.h"
#include "core/formats/dcp/dcp_subclasses.h"
#include "core/formats/dcp/megatron_files.h"
#include "core/formats/dcp/pickled_dicts.h"

namespace shw {
namespace {

bool has_metadata(const DirectoryContents& look) {
  return look.entry(kDcpMetadataName).kind != EntryKind::kMissing;
}
Result<bool> recognises_dcp(const DirectoryContents& look) {
  return has_metadata(look);
}
Result<bool> recognises_megatron(const DirectoryContents& look) {
  // Megatron cannot read the marker if it is a folder or a dead link.
  return has_metadata(look) && look.entry(kMegatronMarker).kind != EntryKind::kMissing;
}
Result<bool> recognises_rank_local(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return !rank_local_metadata(entries).empty();
}

OpenedCheckpoint open_dcp_as_format(std::shared_ptr<const Directory> directory, Progress* progress,
                                    const Format& format) {
  std::string path(kDcpMetadataName);
  switch (directory->stat(path).kind) {
    case EntryKind::kDirectory:
      return fail(ErrorKind::kDamaged, "is a directory where torch's metadata file is expected",
                  {path});
    case EntryKind::kDanglingLink:
      return fail(
          ErrorKind::kIo, "is a broken link", {path},
          "If the checkpoint was assembled with links, check whether the original was moved.");
    case EntryKind::kOther:
      return fail(ErrorKind::kDamaged, "is not a regular file", {path});
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  return read_dcp(std::move(directory), progress, {.format = &format});
}
OpenedCheckpoint open_dcp(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto opened, open_dcp_as_format(std::move(directory), progress, kDcpFormat));
  SHW_TRY(auto unpickled, with_pickled_tensors(std::move(opened), progress));
  return with_wrapped_tensors(std::move(unpickled), progress);
}
OpenedCheckpoint open_megatron(std::shared_ptr<const Directory> directory, Progress* progress) {
  return open_dcp_as_format(std::move(directory), progress, kMegatronFormat);
}
OpenedCheckpoint open_rank_local(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  return read_dcp_rank_local(std::move(directory), rank_local_metadata(entries), progress);
}

FileRole dcp_metadata_file_role(std::string_view file) {
  if (file == kDcpMetadataName) return FileRole::kCheckpoint;
  return file.ends_with(".distcp") ? FileRole::kPart : FileRole::kNothing;
}
FileRole rank_local_file_role(std::string_view file) {
  bool one_of_them = file.starts_with("__") && file.ends_with(kDcpMetadataName);
  return one_of_them ? FileRole::kCheckpoint : FileRole::kNothing;
}

std::optional<Error> unfinished_save(std::span<const Entry> entries) {
  auto any = [&](auto matches) { return std::any_of(entries.begin(), entries.end(), matches); };
  if (any([](const Entry& entry) { return entry.path == ".metadata.tmp"; }))
    return Error{ErrorKind::kDamaged,
                 "has .metadata.tmp but no .metadata: the save did not finish",
                 {".metadata.tmp"},
                 "If every rank had finished, .metadata.tmp may be complete: copy the checkpoint, "
                 "rename the file to .metadata in the copy, and open that."};
  // PaddlePaddle's data files have torch's suffix, but its metadata files are numbered.
  const bool is_of_paddle = any([](const Entry& entry) {
    return entry.path.ends_with(kDcpMetadataName) && entry.path.front() >= '0' &&
           entry.path.front() <= '9';
  });
  if (is_of_paddle) return std::nullopt;
  if (any([](const Entry& entry) { return entry.path.ends_with(".distcp"); }))
    return Error{
        ErrorKind::kDamaged,
        "has data files (.distcp) but no .metadata",
        {std::string(kDcpMetadataName)},
        "The save did not finish, or .metadata is on another node: rank 0 writes it last, on its "
        "local disk. The metadata of an earlier step of the same run describes the same layout."};
  return std::nullopt;
}

}  // namespace

constexpr FormatRow kMegatronRow = {
    &kMegatronFormat,
    kDcpMetadataName,
    recognises_megatron,
    open_megatron,
};
constexpr FormatRow kDcpRow = {
    .format = &kDcpFormat,
    .sign = kDcpMetadataName,
    .recognises = recognises_dcp,
    .open = open_dcp,
    .named = dcp_metadata_file_role,
    .unfinished = unfinished_save,
    .tensor_classes = classes_in_items,
};
constexpr FormatRow kDcpRankLocalRow = {
    &kDcpRankLocalFormat, kDcpMetadataName,     recognises_rank_local,
    open_rank_local,      rank_local_file_role,
};

}  // namespace shw
