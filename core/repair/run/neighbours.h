// Files that lie beside the data of the source: which of them come along into a result.
#pragma once

#include <string>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

// Of a repair whose format and files stay: everything that lies there comes along, but old
// certificates, leftovers of ours, what is written anew, and data files that nothing points to any
// more. Adds them to run.copied; links that lead out stay behind, for people.
std::vector<std::string> choose_files(const Checkpoint& source, FolderRun& run);

// Of what is written anew: where the format stays, all of them but other weights; else, and with
// `weights_only`, what model libraries read beside the weights (companion_names.h). Adds them to
// run.copied; those that stay behind, for people.
std::vector<std::string> choose_neighbours(const Checkpoint& source, bool weights_only,
                                           FolderRun& run);

}  // namespace shw
