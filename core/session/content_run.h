// Commands that show file contents; see commands.h.
#pragma once

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/session/command.h"

namespace shw {

Result<Change> run_show_bytes(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_show_values(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_save_values(const Snapshot& before, const Command& command, Progress* progress);
// The first call lists names in the folder; further calls examine a few entries each.
Result<Change> run_browse(const Snapshot& before, const Command& command, Progress* progress);
Result<Change> run_tensor_numbers(const Snapshot& before, const Command& command,
                                  Progress* progress);
// Reads the next unread tiles of the tensor.
Result<Change> run_tile_values(const Snapshot& before, const Command& command, Progress* progress);
// True if running the command again would add results.
bool has_more_results(const Snapshot& snapshot, const Command& command);

// A file and byte that a finding names.
struct BytePlace {
  std::string file;
  std::uint64_t at = 0;
};
std::optional<BytePlace> byte_place_of(const Snapshot& snapshot, const Finding& finding);
// The selected tile, else the first tile of the tensor.
std::optional<ChunkId> tile_of(const Snapshot& snapshot);

}  // namespace shw
