// Decodes whole items, so that their elements can be read in any order: into a temporary file, or
// into memory, where a cache with a budget decodes each item once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/scratch.h"
#include "core/model/checkpoint.h"

namespace shw {

// kAsRecordedForm: the item must have the sizes of its chunk's record, and match its checksum if
// that is cheap to know. kAny: the item as it is.
enum class DecodedAs : std::uint8_t { kAsRecordedForm, kAny };

// The elements as read_chunk() returns them, in `scratch`, a new file that the source
// keeps open. Elements that must be reordered, byte-swapped or negated take twice the
// space.
Result<std::shared_ptr<const ByteSource>> decode_item(const Checkpoint& checkpoint, ChunkId chunk,
                                                      std::shared_ptr<ScratchFile> scratch,
                                                      const Progress* progress);
// Decodes the elements into memory, about `length` bytes.
Result<Bytes> decode_item(const Checkpoint& checkpoint, ChunkId chunk, std::uint64_t length,
                          const Progress* progress, DecodedAs as = DecodedAs::kAsRecordedForm);

// Memory during decoding: the item, its decompressed form and its elements.
std::uint64_t decoding_bytes(const Checkpoint& input, ChunkId chunk, std::uint64_t elements_bytes);

class DecodedItems {
 public:
  // kAllThreads: shared by all threads. kOneThread: by one, for items as they are, whatever the
  // records say.
  enum class Use : std::uint8_t { kAllThreads, kOneThread };
  explicit DecodedItems(std::uint64_t budget, const Progress* progress = nullptr,
                        Use use = Use::kAllThreads)
      : budget_(budget), progress_(progress), use_(use) {}

  // True if each thread can hold one such item of two checkpoints at the same time, or one item if
  // only one thread uses them. Larger items would evict each other when used in turn.
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

  std::shared_ptr<const Bytes> pin_item(Item& item);
  bool make_room(std::uint64_t needed);

  const std::uint64_t budget_;
  const Progress* const progress_;
  const Use use_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::map<Key, Item> items_;
  std::uint64_t taken_ = 0, peak_ = 0, clock_ = 0;
};

}  // namespace shw
