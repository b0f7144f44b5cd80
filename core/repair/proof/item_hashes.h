// Hashes of items, as they are read from front to back: what apply, in-place repair and verify
// prove by.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/repair/proof/digests.h"

namespace shw {

class ChecksumMismatches;
class ItemHasher;
class CopyHasher;
class Team;

// XXH3-128 of every chunk's item, by chunk id; in parallel, items that several chunks share once.
// `then` is called for every chunk when its item has been hashed, by the same thread. `mismatches`
// hear of items that do not match their checksums, which the same pass holds them against; null:
// nobody does.
using ThenOf = std::function<Status(ChunkId)>;
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                  const ThenOf& then = {},
                                  ChecksumMismatches* mismatches = nullptr);
// The same where another checkpoint points into the same files, and `known` are its hashes: what
// both point to is not read again.
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, const Checkpoint& of_same_files,
                                  const ItemHashes& known, Progress* progress);
// What else is found of a chunk by whoever has hashed its item, and heard by all.
struct ItemHashExtras {
  std::function<Result<Bytes>(ChunkId)> find = {};  // null: nothing
  std::function<Status(ChunkId, BytesView)> receive = {};
};
// The same, each item read by one member of the team. Outside the team's own errors, inside that of
// the first item that cannot be read: the same for all members.
Result<Result<ItemHashes>> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                          Team& team, const ItemHashExtras& extras = {});
// XXH3-128 of an item of a source that came along: as it was seen on the way, or read for it.
Result<Hash128> hash_kept(const Checkpoint& source, ItemPlace item, const CopyHasher& copied_items,
                          ItemHasher& passes, Progress* progress);
// The bytes that hash_all_items() reads.
std::uint64_t item_bytes(const Checkpoint& checkpoint);
// 0 where it has no item.
std::uint64_t item_length(const Checkpoint& checkpoint, ChunkId chunk);
// Items of entries that are no tensors. Names are of the checkpoint, which stays.
class EntryItems {
 public:
  explicit EntryItems(const Checkpoint& checkpoint);
  bool has(std::string_view fqn) const { return places_.contains(fqn); }
  // XXH3-128; an error where the entry has none.
  Result<std::string> hash(std::string_view fqn) const;

 private:
  const Checkpoint& checkpoint_;
  std::unordered_map<std::string_view, ItemPlace> places_;
};

}  // namespace shw
