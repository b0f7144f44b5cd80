// Items that have to be decoded whole, each once for all threads, as long as they fit into a
// budget.
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

// What decoding takes while it goes on: the item, what it is decompressed to, and its elements.
std::uint64_t decoding_bytes(const Checkpoint& input, ChunkId chunk, std::uint64_t elements_bytes);

class DecodedItems {
 public:
  explicit DecodedItems(std::uint64_t budget, const Progress* progress = nullptr)
      : budget_(budget), progress_(progress) {}

  // As many threads as there are may each have one such item of two checkpoints and find it again:
  // where larger ones are asked for in turns, each pushes the others out.
  bool has_room_for(const Checkpoint& input, ChunkId chunk, std::uint64_t length) const;
  // The elements of a chunk, `length` bytes; held as long as somebody uses them, and longer where
  // there is room. Waits for room that others use: nobody asks for one while holding another.
  Result<std::shared_ptr<const Bytes>> read(const Checkpoint& input, ChunkId chunk,
                                            std::uint64_t length);
  // It is asked for no more: its room is the others'.
  void drop(const Checkpoint& input, ChunkId chunk);
  std::uint64_t peak_bytes() const;  // the most that was taken at once

 private:
  using Key = std::pair<const Checkpoint*, ChunkId>;
  struct Item {
    std::unique_ptr<const Bytes> bytes;  // null while it is decoded
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
