// The only code that opens files for reading. Paths are resolved below the checkpoint's descriptor.
// Links may lead elsewhere, because checkpoints are often stitched together with links; a
// *recorded* path may not: is_safe_relative_path checks it first.
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
#include "core/io/path_text.h"
#include "core/io/posix_error.h"
#include "core/io/remote/open_remote.h"
#include "core/io/remote/remote_path.h"
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
    // Dropping pages of a copy would lose its data.
    if (map != nullptr && !is_copied() && first < last)
      ::madvise(static_cast<std::byte*>(map) + first, last - first, MADV_DONTNEED);
  }

  std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const override {
    // On tmpfs a search for holes visits every page: 5 ms per GiB, for each call.
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
  // Reading a mapped file that another process truncates raises SIGBUS, seen in 5 of 60 runs with a
  // save in progress. So files up to this size are copied. Longer ones (half a million chunks and
  // more) would take too much memory and are mapped.
  static constexpr std::uint64_t kMaxCopied = std::uint64_t{64} << 20;
  bool is_copied() const { return size_ <= kMaxCopied; }

  void make_map() const {
    if (size_ == 0) return;
    void* map = is_copied() ? ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                            : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
    if (map == MAP_FAILED) return;
    // If the file has become shorter, a later read() reports the error.
    if (is_copied() && !read(0, std::span(static_cast<std::byte*>(map), size_)))
      ::munmap(map, size_);
    else
      map_ = map;
  }

  std::string name_;
  Descriptor fd_;
  std::uint64_t size_;
  bool may_have_holes_;
  // Initialised by the first call of mapped(), on any thread.
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
    return fail(ErrorKind::kIo,
                S_ISDIR(status.st_mode) ? "is a directory where a file is expected"
                                        : "is not a regular file",
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
      return fail(ErrorKind::kDamaged, "the path points outside the checkpoint folder", {path});
    // O_NONBLOCK, because opening a named pipe must not hang.
    int fd = ::openat(fd_.get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
      int code = errno;
      if (stat(path).kind == EntryKind::kDanglingLink)
        return fail(ErrorKind::kIo, "is a broken link", {path});
      return system_error("cannot open it", path, code);
    }
    return source_of(fd, path);
  }

 private:
  // Maximum depth of subfolders: nanotron has a folder for each module on the path to a weight, and
  // zarr 3 one for each dimension of a chunk.
  static constexpr int kMaxDepth = 24;

  Status walk(const std::string& prefix, int depth, std::size_t limit,
              std::vector<Entry>& entries) const {
    int fd = ::openat(fd_.get(), prefix.empty() ? "." : prefix.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // A subfolder without permission is skipped; any other error fails the listing, because files
    // that can be read might be missed.
    if (fd < 0 && depth > 0 && (errno == EACCES || errno == EPERM || errno == ENOENT)) return {};
    const std::string place = prefix.empty() ? name_ : prefix;
    if (fd < 0) return system_error("cannot list the folder", place, errno);
    const Descriptor folder(fd);
    SHW_TRY(const std::vector<std::string> names, names_in(fd, place));
    for (const std::string& text : names) {
      Entry entry = stat(prefix.empty() ? text : prefix + "/" + text);
      // Linked directories are not entered: a link may lead back up or to the whole machine.
      if (entry.kind == EntryKind::kDirectory && is_link(entry.path)) continue;
      if (entry.kind == EntryKind::kDirectory && text.find(kPartialMark) != text.npos) continue;
      // A directory named like a data file is listed as a directory, so that a rule can report
      // it.
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
  if (is_remote(path)) {
    SHW_TRY(OpenedRemote opened, open_remote(path));
    if (opened.file.empty()) return opened.directory;
    return fail(ErrorKind::kIo, "cannot open the checkpoint: is a file", {path});
  }
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open the checkpoint", path, errno);
  return std::make_shared<PosixDirectory>(path, fd);
}

Result<std::shared_ptr<const ByteSource>> open_file(const std::string& path, std::string name) {
  if (is_remote(path)) {
    SHW_TRY(OpenedRemote opened, open_remote(path));
    return opened.directory->open(opened.file);
  }
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("cannot open it", name, errno);
  return source_of(fd, std::move(name));
}

}  // namespace shw
