// Sends to the disk what was written while more is made, and never lets it fall far behind: whoever
// makes the file durable, or wants to stop, waits for that much and not for gigabytes.
#pragma once

#include <sys/types.h>

namespace shw {

// Of a file that is written from its beginning on by one thread.
class WriteBehind {
 public:
  explicit WriteBehind(int fd) : fd_(fd) {}
  // All before `end` has been written. May wait for the disk, for what was written long before.
  void wrote_until(off_t end);

 private:
  int fd_;
  off_t begun_ = 0;  // before it the disk has begun with all
};

}  // namespace shw
