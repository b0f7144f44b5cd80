#include "core/io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace shw {

Result<FolderLock> FolderLock::take(const std::string& path) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kBetween(20);
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FolderLock(-1);
  for (int i = 0; i < kTries; ++i) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return FolderLock(fd);
    if (errno != EWOULDBLOCK && errno != EINTR) {
      ::close(fd);
      return FolderLock(-1);
    }
    std::this_thread::sleep_for(kBetween);
  }
  ::close(fd);
  return fail(ErrorKind::kUsage, "is being repaired by another process", {path});
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace shw
