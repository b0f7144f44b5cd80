// Bytes to read, wherever they lie. A source is immutable and may be read from several threads at
// once.
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
  bool hole = false;  // reads as zeros and takes no disk
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // The name that errors carry: relative to the checkpoint.
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  // Fills all of `out` from `offset`, or says what is missing (kDamaged past the end, kIo from the
  // system).
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // All bytes as they lie in memory or mapped; empty where the source has no such form, or its file
  // was cut. Valid as long as the source. Up to 64 MiB are copied; a longer file is mapped, and
  // raises SIGBUS where it is cut short meanwhile.
  virtual BytesView mapped() const { return {}; }
  // That range of mapped() will not be looked at again soon: its pages need not stay in memory.
  virtual void forget(std::uint64_t, std::uint64_t) const {}
  // Data and holes of a range, in order, covering it exactly. Without knowledge: one data extent.
  virtual std::vector<Extent> extents(std::uint64_t offset, std::uint64_t length) const {
    return {{offset, length, false}};
  }
  // The open file of this machine that is read, byte for byte, for whoever can ask its file system
  // for more than bytes; -1 where it is none.
  virtual int descriptor() const { return -1; }
  // All of a range reads as zeros and takes no disk; false where that is not known. Cheaper than
  // extents(): it does not look for where data ends.
  virtual bool is_hole(std::uint64_t, std::uint64_t) const { return false; }
};

// Reads `length` bytes into memory; a length beyond the end of the source is kDamaged before
// anything is allocated.
Result<Bytes> read_bytes(const ByteSource& source, std::uint64_t offset, std::uint64_t length);

enum class EntryKind : std::uint8_t { kFile, kDirectory, kDanglingLink, kOther, kMissing };

struct Entry {
  std::string path;  // relative to the directory, '/' between parts
  EntryKind kind = EntryKind::kMissing;
  std::uint64_t size = 0;        // of what a link points to
  std::int64_t modified_ns = 0;  // since the epoch
  std::uint64_t disk_bytes = 0;  // what it takes on disk: less than size where there are holes
  // When its bytes, names or rights were changed, which nobody can set back; 0 where it is not
  // known.
  std::int64_t changed_ns = 0;
};

// A folder to read from. Paths are relative; one that is absolute or climbs out ("..") is refused
// with kDamaged.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual const std::string& name() const = 0;  // as the person wrote it
  // All entries below, depth first, sorted by path; directories are not listed themselves. At most
  // `limit` entries.
  virtual Result<std::vector<Entry>> list(std::size_t limit = 2'000'000) const = 0;
  virtual Entry stat(const std::string& path) const = 0;
  virtual Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const = 0;
};

// True for a relative path without "..", NUL or empty parts.
bool is_safe_relative_path(std::string_view path);

// A directory of the file system. kIo where it is missing or no directory.
Result<std::shared_ptr<const Directory>> open_directory(const std::string& path);
// One file of the file system as a source. `name` is what errors call it.
Result<std::shared_ptr<const ByteSource>> open_file(const std::string& path, std::string name);

// Bytes that live in memory: tests, and parts of files already read.
std::shared_ptr<const ByteSource> memory_source(std::string name, Bytes bytes);
// A directory that lives in memory.
std::shared_ptr<const Directory> memory_directory(std::string name,
                                                  std::vector<std::pair<std::string, Bytes>> files);

// A window on another source: offsets start at 0, errors keep the outer file's offsets.
std::shared_ptr<const ByteSource> window(std::shared_ptr<const ByteSource> source,
                                         std::uint64_t offset, std::uint64_t length);

// For tests: passes reads on until `decide` names an error for one. The directory form wraps every
// file.
using ReadFault = std::function<std::optional<Error>(const std::string& path, std::uint64_t offset,
                                                     std::size_t length)>;
std::shared_ptr<const Directory> faulty_directory(std::shared_ptr<const Directory> inner,
                                                  ReadFault decide);

}  // namespace shw
