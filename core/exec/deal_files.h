// Who does what where several workers make one folder. Those of one machine share its page cache:
// they write its files together, piece by piece, and each reads what it writes. What has to
// be decoded, and what another machine needs, is read by one of them and sent.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/folder_run.h"

namespace shw {

struct DealtFiles {
  std::vector<std::uint32_t> machine;  // by worker
  std::vector<std::uint32_t> order;    // workers, those of one machine side by side
  // By index in LaidOut::files, in the order of workers and as many bytes each: whose machine
  // writes it.
  std::vector<std::uint32_t> writer;
  std::vector<std::uint32_t> reader;  // by source of the program, where it is read by one alone
  std::vector<bool> is_decoded;       // by source: which is done once

  // Who reads a source for what `worker` writes.
  std::uint32_t reader_for(SourceId source, std::uint32_t worker) const {
    if (source == SourceId::kNone) return worker;
    const auto at = static_cast<std::size_t>(source);
    return !is_decoded[at] && machine[reader[at]] == machine[worker] ? worker : reader[at];
  }
};
// `machines` by worker; `there`, by index in LaidOut::files, needs nobody. A source that is read by
// one goes to a worker who writes much of what is made of it, as long as that one has not got more
// than its share. The same on every worker.
DealtFiles deal_files(const FolderRun& run, const std::vector<bool>& there,
                      const std::vector<std::uint32_t>& machines);

}  // namespace shw
