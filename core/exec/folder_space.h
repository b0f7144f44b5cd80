// Checks that the disk has room for a new folder.
#pragma once

#include <set>
#include <string>

#include "core/exec/folder_run.h"
#include "core/exec/memory_shares.h"

namespace shw {

// `there`: paths of files from an earlier run. Blocks shared with the inputs are not counted;
// sharing is tested with a real file, and only if the space would not suffice otherwise.
Status check_space(const Store& store, const FolderRun& run, const MemoryPlan& shares,
                   const std::set<std::string>& there);

}  // namespace shw
