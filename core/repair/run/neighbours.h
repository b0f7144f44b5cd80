// Files that lie beside the data of the source: which of them come along into a result.
#pragma once

#include <string>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

// Where the format stays, all of them but other weights; else, and with `weights_only`, what model
// libraries read beside the weights (companion_names.h). Adds them to run.copied; those that stay
// behind, for people.
std::vector<std::string> choose_neighbours(const Checkpoint& source, bool weights_only,
                                           FolderRun& run);

}  // namespace shw
