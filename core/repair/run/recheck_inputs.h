// Detects a source that another process writes to while it is read.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"

namespace shw {

// A proof shows only that the result has the bytes that were read. If input files changed meanwhile
// without a new size or mtime (a write that resets the mtime, but also a new hard link or chmod),
// it is open whether all reads saw one state. The certified result is then compared with the
// current source, element by element. All ranks of the team must call this.
struct InputChangeCheck {
  std::vector<WatchedFile> watched;
  std::vector<const Checkpoint*> inputs;
  std::shared_ptr<const Checkpoint> source;
  std::uint64_t memory = kDefaultMemory;
};
Status recheck_changed_inputs(const InputChangeCheck& check, const WrittenFolder& written,
                              Progress* progress);

}  // namespace shw
