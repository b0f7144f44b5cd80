// Hashes of boxes of a tensor: of saved chunks, and of any box in the reference. Memory is one
// slab, whatever the chunk size.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

// The dtype for a comparison: the common one, or the narrower of two floats, to which the wider is
// rounded; nullopt if there is none.
std::optional<Dtype> common_dtype(Dtype a, Dtype b);

struct BoxContent {
  std::string hash;  // 16 bytes: equal for equal elements of boxes of one size
  // Distinct non-zero values, at most kMaxValues.
  std::set<std::uint64_t> values;
};
inline constexpr std::size_t kMaxValues = 16;

// Boxes of one tensor that its chunks tile, as elements of `dtype`. Results are cached.
class TensorBoxes {
 public:
  // `progress` counts read slabs; may be null. `decoded_bytes`: memory for decoded items
  // (ItemCursor).
  TensorBoxes(const Checkpoint& checkpoint, TensorId tensor, Dtype dtype,
              Progress* progress = nullptr, std::uint64_t decoded_bytes = 0);

  // The elements, row-major; nullopt unless all can be read.
  std::optional<Bytes> elements(const Box& box) { return read(chunks_in(box), box); }
  // Up to 4 KiB of leading elements of the box.
  std::optional<Bytes> start(const Box& box);
  std::optional<std::string> start_of(const Box& box);
  std::optional<BoxContent> content_of(const Box& box);
  // The same values for one chunk's own item, whatever offsets its record states: its leading
  // elements, their hash, and the hash of all.
  std::optional<Bytes> start(ChunkId chunk, const Extents& sizes);
  std::optional<std::string> start_of(ChunkId chunk, const Extents& sizes);
  std::optional<BoxContent> content_of(ChunkId chunk, const Extents& sizes);
  // A box within the item of a chunk.
  std::optional<Bytes> part(ChunkId chunk, const Box& inside);
  // The distinct values among its leading elements, as many as start() reads.
  std::set<std::uint64_t> values_at_start(ChunkId chunk, const Extents& sizes);

 private:
  using Key = std::pair<Extents, Extents>;
  std::vector<ChunkId> chunks_in(const Box& box) const;
  std::optional<Bytes> read(const std::vector<ChunkId>& chunks, const Box& box);
  std::optional<Bytes> cast(Result<Bytes> bytes) const;
  std::optional<Bytes> counted(std::optional<Bytes> bytes) const;

  const Checkpoint& checkpoint_;
  TensorId tensor_;
  Dtype own_, dtype_;
  Progress* progress_;
  ItemCursor items_;
  std::map<Key, ChunkId> by_box_;
  std::map<Key, std::optional<std::string>> starts_;
  std::map<Key, std::optional<BoxContent>> contents_;
};

}  // namespace shw
