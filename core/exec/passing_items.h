// Hashes of the items of a source, taken while files that they lie in are copied: who proves the
// copy has no need to read the source again.
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

class PassingItems {
 public:
  PassingItems() = default;
  // Of the items of chunks in these files of it (paths). Keeps nothing of the checkpoint.
  PassingItems(const Checkpoint& source, std::span<const std::string> files);

  // What is to see bytes [begin, begin + length) of a file go by, front to back; nothing where no
  // whole item lies there. Several threads may each see a part; refers to this.
  std::optional<RangeParts> watch(const std::string& file, std::uint64_t begin,
                                  std::uint64_t length);

  // How many bytes from there on are copied at once, so that an item goes by as a whole: about
  // `about` of `length`, or the whole of an item that is longer.
  std::uint64_t length_of_piece(const std::string& file, std::uint64_t begin, std::uint64_t length,
                                std::uint64_t about) const;

  // Each member of a team has seen some of them go by; then all know of all. They watch the same
  // files of the same source.
  Status share(Team& team);

  // XXH3-128 of the item there; nothing where it has not gone by as a whole, or overlaps another.
  std::optional<Hash128> hash_of(FileId file, std::uint64_t offset, std::uint64_t length) const;

 private:
  struct Item {  // 32 bytes: there are as many as tiles
    std::uint64_t offset;
    std::uint64_t length : 63, is_known : 1;
    Hash128 hash{};

    // In a file, whose size is no more than 63 bits say.
    Item(std::uint64_t begin, std::uint64_t bytes)
        : offset(begin), length(bytes & (UINT64_MAX >> 1)), is_known(0) {}
    std::uint64_t end() const { return offset + length; }
    void know(const Hash128& value) {
      hash = value;
      is_known = 1;
    }
  };
  class Watch;

  Status hear(BytesView told);

  // Of hashes: the same bytes may be copied to two places.
  std::unique_ptr<std::mutex> guard_ = std::make_unique<std::mutex>();
  std::vector<std::vector<Item>> items_;        // by file id: in order, none in another
  std::map<std::string, std::uint32_t> files_;  // those that have any
};

}  // namespace shw
