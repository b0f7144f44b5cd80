// Files of a result that are written from memory, where others are copied.
#pragma once

#include <string>

#include "core/exec/folder_run.h"

namespace shw {

void write_instead(const std::string& path, Bytes bytes, FolderRun& run);

// Files among run.copied that the source's directory makes: they are written as it gives them. An
// error where one cannot be read.
Status write_made_files(const Checkpoint& source, FolderRun& run);

}  // namespace shw
