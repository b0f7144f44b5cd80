// Identifies what a folder contains without opening it, for listings and for error
// messages.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/formats/table.h"
#include "core/formats/unsupported_formats.h"

namespace shw {

// Subfolders that are checkpoints, with their format, in natural order: "unet
// (safetensors)".
std::vector<std::string> checkpoints_below(std::span<const Entry> entries,
                                           std::span<const FormatRow> rows);
// Subfolders that are checkpoints, in natural order, without their format.
std::vector<std::string> folders_with_checkpoints(std::span<const Entry> entries,
                                                  std::span<const FormatRow> rows);
// Subfolders of another format than the opened checkpoint, which were not examined.
std::optional<Finding> other_checkpoints_below(std::span<const Entry> entries, const Format& opened,
                                               std::span<const FormatRow> rows);
// Subfolders that are incomplete checkpoints.
struct IncompleteSubfolders {
  std::vector<std::string> unfinished = {};  // an unfinished save
  std::vector<std::string> lacking = {};     // parts are missing
};
IncompleteSubfolders incomplete_subfolders(std::span<const Entry> entries,
                                           std::span<const FormatRow> rows);
// A format that is recognised but not supported; null if there is none.
const UnsupportedFormat* unsupported_format_of(std::span<const Entry> entries);

struct FolderKind {
  const Format* format = nullptr;  // the format if the folder is a checkpoint
  std::size_t below = 0;           // number of checkpoints in its subfolders otherwise
  std::string_view unread = {};    // the unsupported format, by name
  bool has_many = false;           // too many files: only the top level was examined
  // True if opening is fast: no large index, few files.
  bool is_fast_to_open = false;
};
// Examines at most `most` files.
Result<FolderKind> kind_of_folder(std::shared_ptr<const Directory> directory,
                                  std::size_t most = 2048,
                                  std::span<const FormatRow> rows = formats());

// True if a file with this name is a checkpoint by itself: a .safetensors or torch.save file.
bool is_file_of_checkpoint(std::string_view name, std::span<const FormatRow> rows = formats());

}  // namespace shw
