// Files of a result that are written from memory instead of copied.
#pragma once

#include <string>

#include "core/exec/folder_run.h"

namespace shw {

void replace_copied_file(const std::string& path, Bytes bytes, FolderRun& run);

// Writes those files of run.copied that exist only in the source's directory object, not on disk.
// An error if one cannot be read.
Status write_generated_files(const Checkpoint& source, FolderRun& run);

}  // namespace shw
