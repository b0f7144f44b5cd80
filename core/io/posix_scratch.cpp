#include "core/io/posix_scratch.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "core/base/checked.h"
#include "core/io/posix_error.h"

namespace shw {
namespace {

class PosixScratch final : public ScratchFile {
 public:
  PosixScratch(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  PosixScratch(const PosixScratch&) = delete;
  PosixScratch& operator=(const PosixScratch&) = delete;
  ~PosixScratch() override { ::close(fd_); }

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }

  // Never synced: data that fits in the page cache costs no disk
  // writes.
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    const auto end = checked_add<std::uint64_t>(offset, bytes.size());
    if (!end || !narrow<off_t>(*end))
      return fail(ErrorKind::kUsage, "is beyond what a file can hold", {name_, offset});
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("cannot write", name_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
    std::uint64_t before = size_;
    while (before < *end && !size_.compare_exchange_weak(before, *end)) continue;
    return {};
  }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("cannot read", name_, errno);
      if (got == 0)
        return fail(ErrorKind::kDamaged,
                    fmt::format("ends at byte {}, but {} bytes are needed from there on", size(),
                                out.size()),
                    {name_, offset});
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }

 private:
  const std::string name_;
  const int fd_;
  std::atomic<std::uint64_t> size_{0};
};

// Creates a named file and unlinks it at once, for file systems without O_TMPFILE.
int create_and_unlink(int folder) {
  static std::atomic<unsigned> made{0};
  for (int tries = 0; tries < 1000; ++tries) {
    const std::string name = fmt::format(".shardwright-scratch-{}-{}", ::getpid(), made++);
    const int fd =
        ::openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0 || ::unlinkat(folder, name.c_str(), 0) == 0) return fd;
    const int code = errno;
    ::close(fd);
    errno = code;
    return -1;
  }
  return -1;
}

}  // namespace

Result<std::shared_ptr<ScratchFile>> open_posix_scratch(int folder, const std::string& path) {
  int fd = ::openat(folder, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
    fd = create_and_unlink(folder);
  if (fd < 0) return system_error("cannot make a file for what is decoded", path, errno);
  return std::make_shared<PosixScratch>(path + "/(decoded)", fd);
}

}  // namespace shw
