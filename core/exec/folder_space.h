// How much of the disk a new folder takes, and whether that is free.
#pragma once

#include <set>
#include <string>

#include "core/exec/folder_run.h"
#include "core/exec/memory_shares.h"

namespace shw {

// `there`: paths of files that another run has made already. What the file system shares with the
// inputs takes nothing: that is tried, not guessed, where there is too little without it.
Status check_space(const Store& store, const FolderRun& run, const MemoryShares& shares,
                   const std::set<std::string>& there);

}  // namespace shw
