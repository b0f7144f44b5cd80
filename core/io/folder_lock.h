// An advisory lock on a folder for one process at a time. The destructor releases it, and so does
// the end of the process.
#pragma once

#include <string>

#include "core/base/result.h"

namespace shw {

class FolderLock {
 public:
  // Waits up to one second, then fails with kUsage. Locks nothing if the path is not a local folder
  // or its file system lacks flock(2) on folders; exclusive creation is then the only guard.
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
