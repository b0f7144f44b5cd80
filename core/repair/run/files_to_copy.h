// Chooses which files next to the source's data are copied into the result.
#pragma once

#include <string>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

// For a repair that keeps format and files: adds every file of the source to run.copied except old
// certificates, unfinished files of earlier repairs, files that are rewritten, and data files that
// no record uses. Returns the links that lead outside of the folder; they are not copied.
std::vector<std::string> add_files_to_copy(const Checkpoint& source, FolderRun& run);

// For a result that is rewritten: adds files to run.copied. If the format stays, these are all
// but other weights; otherwise, or with `weights_only`, those that model libraries read next to
// weights (companion_names.h). Returns the paths of the others, for messages.
std::vector<std::string> add_companions_to_copy(const Checkpoint& source, bool weights_only,
                                                FolderRun& run);

}  // namespace shw
