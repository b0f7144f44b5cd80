// Hashes items of a source while the files that contain them are copied, so that the proof of the
// copy does not read the source again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/team.h"
#include "core/io/read_through.h"
#include "core/model/checkpoint.h"

namespace shw {

class CopyHasher {
 public:
  CopyHasher() = default;
  // For the items of all chunks in the files with these paths. Keeps no reference to `source`.
  CopyHasher(const Checkpoint& source, std::span<const std::string> files);

  // A visitor that must receive bytes [begin, begin + length) of a file in order; nullopt if no
  // whole item is in that range. Thread-safe for different ranges; refers to this object.
  std::optional<ExtentVisitor> watch(const std::string& file, std::uint64_t begin,
                                     std::uint64_t length);

  // The length of the next copy step from `begin` on: about `about` of the `length` bytes, extended
  // so that no item is split.
  std::uint64_t length_of_piece(const std::string& file, std::uint64_t begin, std::uint64_t length,
                                std::uint64_t about) const;

  // Exchanges the hashes between the processes of a team, which must watch the same files of the
  // same source.
  Status share(Team& team);

  // XXH3-128 of the item; nullopt if it was not copied as a whole or overlaps another item.
  std::optional<Hash128> hash_of(FileId file, std::uint64_t offset, std::uint64_t length) const;

 private:
  struct Item {  // 32 bytes, one per chunk
    std::uint64_t offset;
    std::uint64_t length : 63, is_known : 1;
    Hash128 hash{};

    // File sizes fit in 63 bits.
    Item(std::uint64_t begin, std::uint64_t bytes)
        : offset(begin), length(bytes & (UINT64_MAX >> 1)), is_known(0) {}
    std::uint64_t end() const { return offset + length; }
    void set_hash(const Hash128& value) {
      hash = value;
      is_known = 1;
    }
  };
  class PartItemHasher;

  Status receive(BytesView told);

  // Guards the hashes: the same bytes may be copied to two places.
  std::unique_ptr<std::mutex> guard_ = std::make_unique<std::mutex>();
  std::vector<std::vector<Item>> items_;        // by file id, sorted, not nested
  std::map<std::string, std::uint32_t> files_;  // files that have items
};

}  // namespace shw
