// Opens a folder of several torch.save files without an index:
//
//   names that no two files share       the files are parts of one: model.pt and optimizer.pt
//   equal names, and file names that    steps or copies of one model: opens the last one by name,
//   differ only in a number             reports the others
//   equal names between files that     saves of several files: opens the last one, as above
//   differ only in one number
//   otherwise                           the tensors of all files, prefixed by the file's name
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/format_row.h"

namespace shw {

struct TorchFileGroup {
  std::vector<std::string> paths = {};  // files to read
  bool is_prefixed = false;             // tensor names get the file's stem as prefix
  std::vector<std::string> aside = {};  // other steps
};
// nullopt if there are fewer than two weight files. Unreadable files have no names.
Result<std::optional<TorchFileGroup>> find_torch_file_group(const DirectoryContents& look);
// True if there are several, checked by file names and first bytes without reading pickles.
Result<bool> has_torch_file_group(const DirectoryContents& look);

// The file's stem: "model" for "model.pt".
std::string torch_stem(const std::string& path);
// Finding about which of several files were opened, and why.
Finding torch_file_group_finding(const TorchFileGroup& several);
// Files that are missing between numbered ones whose numbers are padded with zeros
// ("hf_model_0001_0.pt", "hf_model_0003_0.pt"); nullopt if none is.
std::optional<Finding> missing_numbered_files_finding(const TorchFileGroup& several);

}  // namespace shw
