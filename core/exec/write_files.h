// The files that a format has laid out, written by as many threads as there are, each part where it
// belongs.
#pragma once

#include "core/exec/file_writer.h"

namespace shw {

// All but those that are `there`, by index in LaidOut::files. What their tiles must hold, by index
// in LaidOut::made; nothing of tiles that were there. What is copied goes by at `came_along`, what
// is read at `sums`.
Result<std::vector<std::optional<ElementSums>>> write_files(
    const FolderRun& run, const MemoryShares& shares, const Executors& executors,
    const std::vector<bool>& there, WritableDirectory& directory, const FileDone& done,
    PassingItems& came_along, SourceSums& sums, Progress* progress);

}  // namespace shw
