// The agreement of the ranks before they write a folder together.
#pragma once

#include <string>
#include <vector>

#include "core/base/team.h"
#include "core/exec/journal.h"
#include "core/exec/memory_shares.h"

namespace shw {

// An error on all ranks if one would write something else: another program, other files or other
// inputs. `shares` are taken from rank 0, so that all split the work alike.
Status agree_on_run(Team& team, const JournalHeader& header, MemoryPlan& shares);

// The unfinished folder that rank 0 has created, and its durable files.
struct CreatedFolder {
  std::string partial;
  std::vector<DurableFile> files;
};
// Sends rank 0's value to all ranks.
Result<CreatedFolder> share_created_folder(Team& team, const CreatedFolder& own);

}  // namespace shw
