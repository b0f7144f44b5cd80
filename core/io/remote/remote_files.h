// Interface of a remote place: a listing, and reads of file ranges. RemoteDirectory wraps it as a
// Directory with a shared cache and read-ahead.
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
  std::string path;  // relative to the place; never leaves it
  std::uint64_t size = 0;
  std::string version = {};  // an ETag or similar, which changes with the bytes; may be empty
  std::int64_t modified_ns = 0;
  EntryKind kind = EntryKind::kFile;
  Bytes head = {};  // the file's first bytes, if the listing returned them
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
  // Lists all files in any order; kUnsupported above `limit`.
  virtual Result<std::vector<RemoteFile>> list(std::size_t limit) = 0;
  // Looks up one file by path if lists_all() is false; nullopt if it does not exist.
  virtual Result<std::optional<RemoteFile>> find(const std::string& path) = 0;
  virtual bool lists_all() const = 0;
  // Reads all ranges concurrently. kDamaged if a file has changed since it was listed.
  virtual Status read(std::span<const RemoteRange> ranges) = 0;
};

// Size of the first read of a file and of a cache block: usually enough for a shard's header.
inline constexpr std::uint64_t kRemoteBlock = std::uint64_t{64} << 10;
// A longer range is split into concurrent requests of this length.
inline constexpr std::uint64_t kRemoteRequest = std::uint64_t{4} << 20;

}  // namespace shw
