// What a folder is, without opening it: for lists of many, and for saying what one is instead of a
// checkpoint.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/formats/table.h"
#include "core/formats/unread.h"

namespace shw {

// Folders among these that are checkpoints themselves, each with what it is, in natural order:
// "unet (safetensors)".
std::vector<std::string> checkpoints_below(std::span<const Entry> entries,
                                           std::span<const FormatRow> rows);
// The same folders alone.
std::vector<std::string> folders_with_checkpoints(std::span<const Entry> entries,
                                                  std::span<const FormatRow> rows);
// Those of another format than what was opened around them: nobody looked into them.
std::optional<Finding> others_below(std::span<const Entry> entries, const Format& opened,
                                    std::span<const FormatRow> rows);
// And those that are none yet, or no more.
struct NotWhole {
  std::vector<std::string> unfinished = {};  // a save did not end there
  std::vector<std::string> lacking = {};     // parts of what was saved did not come along
};
NotWhole not_whole_below(std::span<const Entry> entries, std::span<const FormatRow> rows);
// The format that is only told by name; null where it is none of them either.
const UnreadFormat* unread_format_of(std::span<const Entry> entries);

struct FolderKind {
  const Format* format = nullptr;  // of the checkpoint that it is
  std::size_t below = 0;           // checkpoints in its folders, where it is none
  std::string_view unread = {};    // what it is, where that is not read
  bool has_many = false;           // more files than were looked at: only its top was
  // Of a checkpoint that opens at once: no large index, few files.
  bool opens_at_once = false;
};
// Looks at `most` files at the most.
Result<FolderKind> kind_of_folder(std::shared_ptr<const Directory> directory,
                                  std::size_t most = 2048,
                                  std::span<const FormatRow> rows = formats());

// Whether a file is opened by itself, by its name: a .safetensors file, one of torch.save.
bool is_file_of_checkpoint(std::string_view name, std::span<const FormatRow> rows = formats());

}  // namespace shw
