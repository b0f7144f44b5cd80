// Divides the work if several ranks write one folder. Ranks on one machine share its page cache:
// they write files together, piece by piece, and each reads its own sources. Items that must be
// decoded or that another machine needs are read by one rank and sent.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

struct FileAssignment {
  std::vector<std::uint32_t> machine;  // by rank
  std::vector<std::uint32_t> order;    // ranks, grouped by machine
  // By index in LaidOut::files: a rank of the machine that writes the file; about equal bytes per
  // rank.
  std::vector<std::uint32_t> writer;
  std::vector<std::uint32_t> reader;  // by source: the rank that reads it, if only one does
  std::vector<bool> is_decoded;       // by source: decoded once, by its reader

  // The rank that reads `source` for what `worker` writes.
  std::uint32_t reader_for(SourceId source, std::uint32_t worker) const {
    if (source == SourceId::kNone) return worker;
    const auto at = static_cast<std::size_t>(source);
    return !is_decoded[at] && machine[reader[at]] == machine[worker] ? worker : reader[at];
  }
};
// `machines`: by rank. `there`: by index in LaidOut::files, true for files that exist already. A
// source read by one rank goes to a rank that writes much of its data, unless that rank already
// reads more than its part. Equal on every rank.
FileAssignment assign_files(const FolderRun& run, const std::vector<bool>& there,
                            const std::vector<std::uint32_t>& machines);

}  // namespace shw
