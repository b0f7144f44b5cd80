// One process at a time in a short stretch of work on a folder. It holds while the lock lives, and
// goes with the process.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

class FolderLock {
 public:
  // Waits for a second, then kUsage. Holds nothing where the path is no folder of this machine, or
  // its file system knows no flock(2) of folders: what is created exclusively is all that is left.
  static Result<FolderLock> take(const std::string& path);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace shw
