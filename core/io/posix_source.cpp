// The only code that opens files to read. A path is resolved below the checkpoint's own descriptor;
// a link may lead elsewhere (checkpoints are often stitched together with links), but a *recorded*
// path never does: is_safe_relative_path comes first.
#include <fcntl.h>
#include <fmt/core.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/io/list_names.h"
#include "core/io/place.h"
#include "core/io/posix_error.h"
#include "core/io/source.h"

namespace shw {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, int fd, const struct stat& status)
      : name_(std::move(name)),
        fd_(fd),
        size_(static_cast<std::uint64_t>(status.st_size)),
        may_have_holes_(status.st_blocks < status.st_size / 512) {}
  ~FileSource() override {
    if (map_ != nullptr) ::munmap(map_, size_);
  }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  int descriptor() const override { return fd_.get(); }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_ || out.size() > size_ - offset) {
      return fail(ErrorKind::kDamaged,
                  fmt::format("ends at byte {}, but {} bytes are needed from byte {}", size_,
                              out.size(), offset),
                  {name_, offset});
    }
    while (!out.empty()) {
      ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return fail(ErrorKind::kIo, std::string("cannot read: ") + std::strerror(errno),
                    {name_, offset});
      if (got == 0)
        return fail(ErrorKind::kDamaged, "became shorter while it was read", {name_, offset});
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }

  BytesView mapped() const override {
    std::call_once(map_once_, [&] { make_map(); });
    void* map = map_;
    return {static_cast<const std::byte*>(map), map == nullptr ? 0 : size_};
  }

  void forget(std::uint64_t offset, std::uint64_t length) const override {
    constexpr std::uint64_t kPage = 4096;
    std::uint64_t first = (offset + kPage - 1) / kPage * kPage;
    std::uint64_t last = std::min(size_, offset + length) / kPage * kPage;
    void* map = map_;
    // Of a copy it would be lost.
    if (map != nullptr && !is_copied() && first < last)
      ::madvise(static_cast<std::byte*>(map) + first, last - first, MADV_DONTNEED);
  }

  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    // To find no hole a memory disk looks at every page up to the end: 5 ms a GiB, for each range.
    if (!may_have_holes_) return ByteSource::extents(offset, length);
    std::vector<Extent> found;
    std::uint64_t end = std::min(size_, offset + length);
    std::uint64_t at = offset;
    while (at < end) {
      off_t data = ::lseek(fd_.get(), static_cast<off_t>(at), SEEK_DATA);
      std::uint64_t data_begin =
          data < 0 ? (errno == ENXIO ? end : at) : std::min(end, static_cast<std::uint64_t>(data));
      if (data_begin > at) found.push_back({at, data_begin - at, true});
      if (data_begin >= end) break;
      off_t hole = ::lseek(fd_.get(), static_cast<off_t>(data_begin), SEEK_HOLE);
      std::uint64_t data_end = hole < 0 ? end : std::min(end, static_cast<std::uint64_t>(hole));
      found.push_back({data_begin, data_end - data_begin, false});
      at = data_end;
    }
    if (at < offset + length && end < offset + length)
      found.push_back({end, offset + length - end, false});
    return found;
  }

  bool is_hole(std::uint64_t offset, std::uint64_t length) const override {
    if (!may_have_holes_ || offset > size_ || length > size_ - offset) return false;
    off_t data = ::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_DATA);
    return data < 0 ? errno == ENXIO : static_cast<std::uint64_t>(data) >= offset + length;
  }

 private:
  // A mapped file that is cut while it is read, by a save that begins anew, raises SIGBUS: 5 of 60
  // times. So the bytes are copied. A longer file, of half a million chunks and more, would take
  // too much memory, and is mapped.
  static constexpr std::uint64_t kMostCopied = std::uint64_t{64} << 20;
  bool is_copied() const { return size_ <= kMostCopied; }

  void make_map() const {
    if (size_ == 0) return;
    void* map = is_copied() ? ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                            : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
    if (map == MAP_FAILED) return;
    // One that has become shorter is read by who asks, and meets the error.
    if (is_copied() && !read(0, std::span(static_cast<std::byte*>(map), size_)))
      ::munmap(map, size_);
    else
      map_ = map;
  }

  std::string name_;
  Descriptor fd_;
  std::uint64_t size_;
  bool may_have_holes_;
  // Made by the first caller of mapped(), whichever thread that is in.
  mutable std::once_flag map_once_;
  mutable std::atomic<void*> map_{nullptr};
};

Result<std::shared_ptr<const ByteSource>> source_of(int fd, std::string name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    int code = errno;
    ::close(fd);
    return system_error("cannot look at it", name, code);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    return fail(
        ErrorKind::kIo,
        S_ISDIR(status.st_mode) ? "is a directory where a file is expected" : "is no regular file",
        {name});
  }
  return std::make_shared<FileSource>(std::move(name), fd, status);
}

Entry entry_of(std::string path, const struct stat& status) {
  Entry entry{std::move(path)};
  entry.kind = S_ISREG(status.st_mode)   ? EntryKind::kFile
               : S_ISDIR(status.st_mode) ? EntryKind::kDirectory
                                         : EntryKind::kOther;
  entry.size = static_cast<std::uint64_t>(status.st_size);
  entry.modified_ns = status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec;
  entry.changed_ns = status.st_ctim.tv_sec * 1'000'000'000LL + status.st_ctim.tv_nsec;
  entry.disk_bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  return entry;
}

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  const std::string& name() const override { return name_; }

  Result<std::vector<Entry>> list(std::size_t limit) const override {
    std::vector<Entry> entries;
    SHW_CHECK(walk("", 0, limit, entries));
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.path < b.path; });
    return entries;
  }

  Entry stat(const std::string& path) const override {
    struct stat status {};
    if (!is_safe_relative_path(path)) return {path};
    if (::fstatat(fd_.get(), path.c_str(), &status, 0) == 0) return entry_of(path, status);
    bool dangling = ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(status.st_mode);
    return {path, dangling ? EntryKind::kDanglingLink : EntryKind::kMissing};
  }

  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    if (!is_safe_relative_path(path))
      return fail(ErrorKind::kDamaged, "the path leaves the checkpoint", {path});
    // O_NONBLOCK: a named pipe in place of a file must not hang the reader.
    int fd = ::openat(fd_.get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      int code = errno;
      if (stat(path).kind == EntryKind::kDanglingLink)
        return fail(ErrorKind::kIo, "is a link to something that is not there", {path});
      return system_error("cannot open it", path, code);
    }
    return source_of(fd, path);
  }

 private:
  // Folders below folders: four levels are enough for every format that is read, and deeper trees
  // are not part of a checkpoint.
  static constexpr int kMaxDepth = 4;

  Status walk(const std::string& prefix, int depth, std::size_t limit,
              std::vector<Entry>& entries) const {
    int fd = ::openat(fd_.get(), prefix.empty() ? "." : prefix.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A folder that this user may not open is no part of what can be read; any other error hides
    // files that may be.
    if (fd < 0 && depth > 0 && (errno == EACCES || errno == EPERM || errno == ENOENT)) return {};
    const std::string place = prefix.empty() ? name_ : prefix;
    if (fd < 0) return system_error("cannot list the folder", place, errno);
    const Descriptor folder(fd);
    SHW_TRY(const std::vector<std::string> names, names_in(fd, place));
    for (const std::string& text : names) {
      Entry entry = stat(prefix.empty() ? text : prefix + "/" + text);
      // A linked directory is not entered: it may lead back up, or to the whole machine.
      if (entry.kind == EntryKind::kDirectory && is_link(entry.path)) continue;
      if (entry.kind == EntryKind::kDirectory && text.find(kPartialMark) != text.npos) continue;
      // A directory under the name of a data file is listed for what it is, so that somebody says
      // so.
      if (entry.kind == EntryKind::kDirectory && depth < kMaxDepth && !is_named_like_data(text)) {
        SHW_CHECK(walk(entry.path, depth + 1, limit, entries));
        continue;
      }
      if (entries.size() == limit)
        return fail(ErrorKind::kUnsupported, fmt::format("more than {} files", limit), {name_});
      entries.push_back(std::move(entry));
    }
    return {};
  }

  static bool is_named_like_data(std::string_view text) {
    return text.ends_with(".safetensors") || text.ends_with(".distcp");
  }

  bool is_link(const std::string& path) const {
    struct stat status {};
    return ::fstatat(fd_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISLNK(status.st_mode);
  }

  std::string name_;
  Descriptor fd_;
};

}  // namespace

Result<std::shared_ptr<const Directory>> open_directory(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open the checkpoint", path, errno);
  return std::make_shared<PosixDirectory>(path, fd);
}

Result<std::shared_ptr<const ByteSource>> open_file(const std::string& path, std::string name) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("cannot open it", name, errno);
  return source_of(fd, std::move(name));
}

}  // namespace shw
