// A cache of decoded items shared by all threads, within a memory budget; each item is decoded
// once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

// Memory during decoding: the item, its decompressed form and its elements.
std::uint64_t decoding_bytes(const Checkpoint& input, ChunkId chunk, std::uint64_t elements_bytes);

class DecodedItems {
 public:
  explicit DecodedItems(std::uint64_t budget, const Progress* progress = nullptr)
      : budget_(budget), progress_(progress) {}

  // True if every thread can hold one such item of two checkpoints at the same time. Larger items
  // would evict each other when used in turn.
  bool has_room_for(const Checkpoint& input, ChunkId chunk, std::uint64_t length) const;
  // The elements of a chunk (`length` bytes), kept while in use and longer if there is room. Blocks
  // until others release memory, so a caller must not hold another item.
  Result<std::shared_ptr<const Bytes>> read(const Checkpoint& input, ChunkId chunk,
                                            std::uint64_t length);
  // The item is not needed any more: frees its memory.
  void drop(const Checkpoint& input, ChunkId chunk);
  std::uint64_t peak_bytes() const;  // maximum memory at any time

 private:
  using Key = std::pair<const Checkpoint*, ChunkId>;
  struct Item {
    std::unique_ptr<const Bytes> bytes;  // null while being decoded
    std::uint64_t taken = 0;
    std::uint64_t last_used = 0;
    int users = 0;
  };

  std::shared_ptr<const Bytes> lend(Item& item);
  bool make_room(std::uint64_t needed);

  const std::uint64_t budget_;
  const Progress* const progress_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::map<Key, Item> items_;
  std::uint64_t taken_ = 0, peak_ = 0, clock_ = 0;
};

}  // namespace shw
