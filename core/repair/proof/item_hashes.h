// Hashes items while reading them front to back. Apply, in-place repair and verify prove with these
// hashes.
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
class ItemCursor;
class CopyHasher;
class Team;

// XXH3-128 of every chunk's item, by chunk id; in parallel, shared items once. `then` is called for
// every chunk after its item has been hashed, on the same thread. The same pass verifies checksums
// and adds failures to `mismatches` unless it is null.
using ChunkCallback = std::function<Status(ChunkId)>;
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                  const ChunkCallback& then = {},
                                  ChecksumMismatches* mismatches = nullptr);
// Hashes a checkpoint whose records may point into the files of `of_same_files`, which has the
// hashes `known`: items that both share are not read again.
Result<ItemHashes> hash_all_items(const Checkpoint& checkpoint, const Checkpoint& of_same_files,
                                  const ItemHashes& known, Progress* progress);
// Another result per chunk, computed on the rank that hashed it and sent to all.
struct ItemHashExtras {
  std::function<Result<Bytes>(ChunkId)> find = {};  // null: nothing
  std::function<Status(ChunkId, BytesView)> receive = {};
};
// Hashes with a team: each item is read by one rank. The outer error is one of communication, the
// inner one that of the first unreadable item; both are equal on all ranks.
Result<Result<ItemHashes>> hash_all_items(const Checkpoint& checkpoint, Progress* progress,
                                          Team& team, const ItemHashExtras& extras = {});
// XXH3-128 of a source item that was kept: as computed while copying, otherwise from reading it.
Result<Hash128> hash_of_kept_item(const Checkpoint& source, ItemPlace item,
                                  const CopyHasher& copied_items, ItemCursor& items,
                                  Progress* progress);
// Number of bytes that hash_all_items() reads.
std::uint64_t item_bytes(const Checkpoint& checkpoint);
// 0 if the chunk has no item.
std::uint64_t item_length(const Checkpoint& checkpoint, ChunkId chunk);
// Hashes the items of non-tensor entries. Refers to the checkpoint, which must outlive it.
class EntryItems {
 public:
  explicit EntryItems(const Checkpoint& checkpoint);
  bool has(std::string_view fqn) const { return places_.contains(fqn); }
  // XXH3-128; an error if the entry has no item.
  Result<std::string> hash(std::string_view fqn) const;

 private:
  const Checkpoint& checkpoint_;
  std::unordered_map<std::string_view, ItemPlace> places_;
};

}  // namespace shw
