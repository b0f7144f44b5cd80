// What a kind of remote place has to offer: a listing, and ranges of its files. RemoteDirectory
// makes a Directory of it, with a cache and read-ahead that all of them share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

struct RemoteFile {
  std::string path;  // relative to the place, safe
  std::uint64_t size = 0;
  std::string version = {};  // an ETag or the like: other bytes have another one; may be empty
  std::int64_t modified_ns = 0;
  EntryKind kind = EntryKind::kFile;
  Bytes head = {};  // its first bytes, where they came along
};

// One read of one file; all of `out` is filled.
struct RemoteRange {
  const RemoteFile* file = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;
  // Files below, in any order. At most `limit`, else kUnsupported.
  virtual Result<std::vector<RemoteFile>> list(std::size_t limit) = 0;
  // Of a place that has no full listing: a file by its path; nothing where it is not there.
  virtual Result<std::optional<RemoteFile>> find(const std::string& path) = 0;
  virtual bool lists_all() const = 0;
  // As many at once as the place takes. A file that is not the one that was listed is kDamaged.
  virtual Status read(std::span<const RemoteRange> ranges) = 0;
};

// The first read of a file, and the least that is read of it: one header of a shard as a rule.
inline constexpr std::uint64_t kRemoteBlock = std::uint64_t{64} << 10;
// A range is cut into requests of this length, which travel side by side.
inline constexpr std::uint64_t kRemoteRequest = std::uint64_t{4} << 20;

}  // namespace shw
