// The journal of a folder that several workers make: the first one writes it, and the others tell
// it which of their files are durable.
#pragma once

#include <mutex>
#include <vector>

#include "core/base/packed.h"
#include "core/base/team.h"
#include "core/exec/journal.h"

namespace shw {

class TeamJournal {
 public:
  // `journal` is the first worker's; null on the others.
  TeamJournal(Team& team, Journal* journal) : team_(team), journal_(journal) {}

  // From several threads.
  Status add(const DurableFile& file);
  // What has been added since it was asked before, for the first one, and that of others.
  Bytes news();
  Status hear(std::size_t member, BytesView news);

 private:
  Team& team_;
  Journal* journal_;
  std::mutex guard_;
  std::vector<DurableFile> untold_;
};

void pack(Packer& words, const DurableFile& file);
Result<DurableFile> unpack_durable_file(Unpacker& words);

}  // namespace shw
