// Read-only byte sources: files, memory and directories. Sources are immutable and
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool hole = false;  // reads as zeros and takes no disk space
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // The name used in errors, relative to the checkpoint.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  // Fills all of `out` from `offset`. Fails with kDamaged past the end of the source, with kIo for
  // system errors.
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The whole source in memory; empty if not supported or if the file was truncated. Valid while
  // the source lives. Files up to 64 MiB are copied; longer ones are mapped, and raise SIGBUS if
  // another process truncates them.
  virtual BytesView mapped() const { return {}; }
  // Hint that this range of mapped() is not needed soon, so that its pages can be dropped.
  virtual void forget(std::uint64_t, std::uint64_t) const {}
  // Data and hole extents that cover the range exactly, in order; one data extent if unknown.
  virtual std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const {
    return {{offset, length, false}};
  }
  // The file descriptor of a local file whose bytes this source returns unchanged, for calls to the
  // file system such as reflink; -1 if there is none.
  virtual int descriptor() const { return -1; }
  // True if the whole range is known to be a hole. Cheaper than extents(), because it does not
  // search for the end of the data.
  virtual bool is_hole(std::uint64_t, std::uint64_t) const { return false; }
};

// Reads `length` bytes into memory; a range beyond the end of the source is kDamaged before memory
// is allocated.
Result<Bytes> read_bytes(const ByteSource& source, std::uint64_t offset, std::uint64_t length);

enum class EntryKind : std::uint8_t { kFile, kDirectory, kDanglingLink, kOther, kMissing };

struct Entry {
  std::string path;  // relative to the directory, with '/' separators
  EntryKind kind = EntryKind::kMissing;
  std::uint64_t size = 0;        // links: size of the target
  std::int64_t modified_ns = 0;  // nanoseconds since the epoch
  std::uint64_t disk_bytes = 0;  // allocated bytes: less than `size` if there are holes
  // Time of the last change of bytes, names or permissions, which no user can set back; 0 if
  // unknown.
  std::int64_t changed_ns = 0;
};

struct FilesOfFolder {
  std::string folder;  // Directory::name
  std::vector<Entry> files;
};

// A folder to read from. Paths are relative; absolute paths and paths with ".." are refused with
// kDamaged.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual const std::string& name() const = 0;  // as the user wrote it
  // Lists all files below the folder, depth first, sorted by path, without the directories
  // themselves; at most `limit` entries.
  virtual Result<std::vector<Entry>> list(std::size_t limit = 2'000'000) const = 0;
  virtual Entry stat(const std::string& path) const = 0;
  virtual Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const = 0;
  // True if open() returns computed bytes that differ from the file name() + "/" + path.
  virtual bool is_made([[maybe_unused]] const std::string& path) const { return false; }
  // The files, in this or other folders, from which the computed bytes of is_made() are derived.
  virtual std::vector<FilesOfFolder> made_of() const { return {}; }
};

// True for a relative path without "..", NUL bytes and empty parts.
bool is_safe_relative_path(std::string_view path);

// A directory of the file system. kIo if it is missing or not a directory.
Result<std::shared_ptr<const Directory>> open_directory(const std::string& path);
// A file of the file system. `name` is used in errors.
Result<std::shared_ptr<const ByteSource>> open_file(const std::string& path, std::string name);

// Bytes in memory, for tests and for parts of files that were read already.
std::shared_ptr<const ByteSource> memory_source(std::string name, Bytes bytes);
// A directory in memory.
std::shared_ptr<const Directory> memory_directory(std::string name,
                                                  std::vector<std::pair<std::string, Bytes>> files);

// A byte range of another source; offsets start at 0, errors show offsets of the outer file.
std::shared_ptr<const ByteSource> window(std::shared_ptr<const ByteSource> source,
                                         std::uint64_t offset, std::uint64_t length);

// For tests: a source that forwards reads unless `decide` returns an error for a read. The
// directory form wraps every file.
using ReadFault = std::function<std::optional<Error>(const std::string& path, std::uint64_t offset,
                                                     std::size_t length)>;
std::shared_ptr<const Directory> faulty_directory(std::shared_ptr<const Directory> inner,
                                                  ReadFault decide);

}  // namespace shw
