// The journal of a folder written by several ranks: rank 0 writes it; the others send it the names
// of their durable files.
#pragma once

#include <mutex>
#include <vector>

#include "core/base/encoder.h"
#include "core/base/team.h"
#include "core/exec/journal.h"

namespace shw {

class TeamJournal {
 public:
  // `journal` is null on all ranks but 0.
  TeamJournal(Team& team, Journal* journal) : team_(team), journal_(journal) {}

  // Thread-safe.
  Status add(const DurableFile& file);
  // Entries added since the last call, for rank 0; and the handler of other ranks' entries.
  Bytes news();
  Status receive(std::size_t member, BytesView news);

 private:
  Team& team_;
  Journal* journal_;
  std::mutex guard_;
  std::vector<DurableFile> unsent_;
};

void pack(Encoder& payload, const DurableFile& file);
Result<DurableFile> unpack_durable_file(Decoder& payload);

}  // namespace shw
