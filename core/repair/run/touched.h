// A source that somebody writes to while it is read.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/exec/folder_run.h"

namespace shw {

// What is proved is that the result holds what was read. Where files of the inputs were touched
// meanwhile and are of the same size and time, as a change behind their back leaves them, or
// another link to them or other rights, nothing says whether that is one state of them: the
// certified result is then held against the source as it is now, element by element. By all of a
// team.
struct TouchCheck {
  std::vector<WatchedFile> watched;
  std::vector<const Checkpoint*> inputs;
  std::shared_ptr<const Checkpoint> source;
  std::uint64_t memory = kDefaultMemory;
};
Status prove_touched(const TouchCheck& check, const WrittenFolder& written, Progress* progress);

}  // namespace shw
