// The rows' other halves of those commands that look into files: see commands.h.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

Result<Change> run_byte_look(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_value_look(const Snapshot& before, const Command& command, Progress* progress);
// The folder's names first; asked again, what the next few of its places are.
Result<Change> run_browse(const Snapshot& before, const Command& command, Progress* progress);
// The next of the tensor's tiles that nobody has looked at.
Result<Change> run_tile_values(const Snapshot& before, const Command& command, Progress* progress);
// True where the same look would see more.
bool sees_more(const Snapshot& snapshot, const Command& command);

// Where a finding says that something stands: a file of the checkpoint and a byte of it.
struct BytePlace {
  std::string file;
  std::uint64_t at = 0;
};
std::optional<BytePlace> byte_place_of(const Snapshot& snapshot, const Finding& finding);
// The tile that is looked at where no other is chosen: the selected one, else the tensor's first.
std::optional<ChunkId> tile_of(const Snapshot& snapshot);

}  // namespace shw
