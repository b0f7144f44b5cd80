// Starts writing dirty pages to the disk while more is produced, and limits the backlog: a later
// sync, or a cancelled run, then waits for 32 MiB at most and not for gigabytes.
#pragma once

#include <sys/types.h>

namespace shw {

// For a file written sequentially by one thread.
class WriteBehind {
 public:
  explicit WriteBehind(int fd) : fd_(fd) {}
  // All bytes before `end` are written. May wait until the disk has caught up.
  void start_writeback_until(off_t end);

 private:
  int fd_;
  off_t begun_ = 0;  // write-back was started for all bytes before it
};

}  // namespace shw
