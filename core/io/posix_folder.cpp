// The only code that writes files. New files are created exclusively and made durable in finish();
// holes are skipped by seeking.
#include "core/io/posix_folder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/checked.h"
#include "core/io/posix_copy.h"
#include "core/io/posix_error.h"
#include "core/io/posix_scratch.h"
#include "core/io/remote/remote_path.h"

namespace shw {
namespace {

// Returns an errno, or 0 for success.
int reflink_range(int to, std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                  std::uint64_t length) {
  file_clone_range range{source.descriptor(), begin, length, offset};
  int code = 0;
  do {
    code = ::ioctl(to, FICLONERANGE, &range) == 0 ? 0 : errno;
  } while (code == EINTR);
  return code;
}

class PosixFile final : public OutputFile {
 public:
  PosixFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;
  ~PosixFile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (fd_ < 0) return already_finished_error();
    auto end = checked_add<std::uint64_t>(offset, bytes.size());
    if (!end || !narrow<off_t>(*end))
      return fail(ErrorKind::kUsage, "is beyond what a file can hold", {name_, offset});
    const std::uint64_t length = bytes.size();
    while (!bytes.empty()) {
      ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        return fail(ErrorKind::kIo, std::string("cannot write: ") + std::strerror(errno),
                    {name_, offset});
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
    start_flushing(length);
    return {};
  }

  Result<bool> reflink_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                          std::uint64_t length) override {
    if (fd_ < 0) return already_finished_error();
    if (source.descriptor() < 0) return false;
    const int code = reflink_range(fd_, offset, source, begin, length);
    // Other errno values mean "not supported": other file system, no sharing, other block size,
    // swap file.
    if (code == EIO || code == ENOSPC || code == EDQUOT || code == EFBIG)
      return fail(ErrorKind::kIo, std::string("cannot share bytes: ") + std::strerror(code),
                  {name_, offset});
    return code == 0;
  }

  Status sync() override {
    if (fd_ < 0) return already_finished_error();
    if (::fdatasync(fd_) != 0) return system_error("cannot flush it to disk", name_, errno);
    return {};
  }

  Status finish(std::uint64_t length) override {
    if (fd_ < 0) return already_finished_error();
    // A hole at the end exists only after the length is set.
    if (::ftruncate(fd_, static_cast<off_t>(length)) != 0)
      return system_error("cannot set the length", name_, errno);
    if (::fsync(fd_) != 0) return system_error("cannot flush it to disk", name_, errno);
    int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) return system_error("cannot close it", name_, errno);
    return {};
  }

 private:
  // Starts write-back of what is written so far, and waits for the previous part: otherwise
  // finish() would wait for everything and could not be cancelled. Only a hint; finish() syncs the
  // rest.
  void start_flushing(std::uint64_t written) {
    constexpr std::uint64_t kAtOnce = std::uint64_t{16} << 20;
    const std::uint64_t before = written_.fetch_add(written, std::memory_order_relaxed);
    if (before / kAtOnce == (before + written) / kAtOnce) return;
    static_cast<void>(
        ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE));
  }

  tl::unexpected<Error> already_finished_error() const {
    return fail(ErrorKind::kUsage, "was finished already", {name_});
  }

  std::string name_;
  int fd_;
  std::atomic<std::uint64_t> written_{0};
};

class PosixWritableDirectory final : public WritableDirectory {
 public:
  PosixWritableDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  PosixWritableDirectory(const PosixWritableDirectory&) = delete;
  PosixWritableDirectory& operator=(const PosixWritableDirectory&) = delete;
  ~PosixWritableDirectory() override { ::close(fd_); }

  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<OutputFile>> create_file(const std::string& relative) override {
    SHW_TRY(int fd, create_exclusively(relative));
    return std::make_unique<PosixFile>(name_of(relative), fd);
  }

  Result<std::unique_ptr<OutputFile>> join_file(const std::string& relative) override {
    SHW_CHECK(check_path(relative));
    int fd = ::openat(fd_, relative.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return system_error("cannot open it", name_of(relative), errno);
    return std::make_unique<PosixFile>(name_of(relative), fd);
  }

  Result<std::shared_ptr<ScratchFile>> create_scratch() override {
    return open_posix_scratch(fd_, path_);
  }

  Result<bool> copy_file_durably(const std::string& source_path, const std::string& relative,
                                 const ExtentVisitor* passing, Progress* progress) override {
    if (is_remote(source_path)) {
      SHW_CHECK(copy_remote(source_path, relative, passing, progress));
      return true;
    }
    int source = ::open(source_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source < 0) return system_error("cannot open it", source_path, errno);
    auto destination = create_exclusively(relative);
    if (!destination) {
      ::close(source);
      return tl::unexpected<Error>(destination.error());
    }
    auto copied = copy_whole_file(source, *destination, source_path, passing, progress);
    ::close(source);
    if (::close(*destination) != 0 && copied)
      copied = system_error("cannot close it", relative, errno);
    return copied;
  }

  Status rename(const std::string& from, const std::string& to) override {
    SHW_CHECK(check_path(from));
    SHW_CHECK(check_path(to));
    if (::renameat(fd_, from.c_str(), fd_, to.c_str()) != 0)
      return system_error("cannot rename it to " + to, from, errno);
    return {};
  }

  Status remove(const std::string& relative) override {
    SHW_CHECK(check_path(relative));
    if (::unlinkat(fd_, relative.c_str(), 0) != 0)
      return system_error("cannot remove it", relative, errno);
    return {};
  }

  void keep(const std::string& relative) override {
    std::lock_guard lock(guard_);
    for (std::size_t slash = relative.find('/'); slash != std::string::npos;
         slash = relative.find('/', slash + 1))
      folders_.insert(relative.substr(0, slash));
  }

  Status sync() override {
    for (const std::string& folder : folders_) {
      int fd = ::openat(fd_, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      int code = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
      if (fd >= 0) ::close(fd);
      if (code != 0) return system_error("cannot flush it to disk", folder, code);
    }
    if (::fsync(fd_) != 0) return system_error("cannot flush it to disk", path_, errno);
    return {};
  }

 private:
  // Full path, so that errors do not look like errors of the source's file of the same name.
  std::string name_of(const std::string& relative) const { return path_ + "/" + relative; }
  static Status check_path(const std::string& relative) {
    if (is_safe_relative_path(relative)) return {};
    return fail(ErrorKind::kUsage, "the path points outside the folder", {relative});
  }

  // ENOSPC has two causes: the disk is full, or it has no free inodes.
  tl::unexpected<Error> cannot_create_error(const std::string& name, int code) const {
    struct statvfs disk {};
    const bool has_no_files = code == ENOSPC && ::fstatvfs(fd_, &disk) == 0 && disk.f_files != 0 &&
                              disk.f_favail == 0 && disk.f_bavail != 0;
    if (!has_no_files) return system_error("cannot create it", name, code);
    return fail(ErrorKind::kIo, "cannot create it: the disk has space but no inodes left", {name});
  }

  Status make_folders(const std::string& relative) {
    for (std::size_t slash = relative.find('/'); slash != std::string::npos;
         slash = relative.find('/', slash + 1)) {
      std::string folder = relative.substr(0, slash);
      if (::mkdirat(fd_, folder.c_str(), 0777) == 0) {
        folders_.insert(std::move(folder));
      } else if (errno != EEXIST) {
        return cannot_create_error(name_of(folder), errno);
      }
    }
    return {};
  }

  Status copy_remote(const std::string& source_path, const std::string& relative,
                     const ExtentVisitor* passing, Progress* progress) {
    SHW_TRY(auto source, open_file(source_path, relative));
    SHW_TRY(auto file, create_file(relative));
    std::uint64_t at = 0;
    const ExtentVisitor parts{[&](BytesView bytes) -> Status {
      SHW_CHECK(file->write_at(at, bytes));
      at += bytes.size();
      return passing == nullptr ? Status{} : passing->bytes(bytes);
    }};
    SHW_CHECK(read_through(*source, 0, source->size(), parts, progress));
    return file->finish(source->size());
  }

  Result<int> create_exclusively(const std::string& relative) {
    SHW_CHECK(check_path(relative));
    {
      std::lock_guard lock(guard_);
      SHW_CHECK(make_folders(relative));
    }
    int fd =
        ::openat(fd_, relative.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return cannot_create_error(name_of(relative), errno);
    return fd;
  }

  std::string path_;
  int fd_;
  std::mutex guard_;
  std::set<std::string> folders_;  // folders with new names: sync() makes the names durable
};

}  // namespace

bool can_reflink_into_posix_folder(const std::string& path, const ByteSource& source) {
  if (source.descriptor() < 0 || source.size() < kShareBlock) return false;
  // Uses O_TMPFILE, which every file system with block sharing supports.
  const int file = ::open(path.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const int code = reflink_range(file, 0, source, 0, kShareBlock);
  ::close(file);
  return code == 0;
}

Result<std::unique_ptr<WritableDirectory>> open_posix_folder(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open the directory", path, errno);
  return std::make_unique<PosixWritableDirectory>(path, fd);
}

}  // namespace shw
