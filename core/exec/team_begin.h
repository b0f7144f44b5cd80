// What workers agree on before they make a folder together.
#pragma once

#include <string>
#include <vector>

#include "core/base/team.h"
#include "core/exec/journal.h"
#include "core/exec/memory_shares.h"

namespace shw {

// An error on all of them where one would make something else: another program, other files, of
// other inputs. They cut their work alike: `shares` become those of the first.
Status agree_on_run(Team& team, const JournalHeader& header, MemoryShares& shares);

// The folder that the first one has begun, and what of it is durable.
struct BegunFolder {
  std::string partial;
  std::vector<DurableFile> files;
};
// What the first one has, on all.
Result<BegunFolder> share_begun(Team& team, const BegunFolder& own);

}  // namespace shw
