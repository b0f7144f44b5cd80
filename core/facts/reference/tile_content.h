// What boxes of a tensor hold, told by hashes: of the tiles that a checkpoint saved, and of any box
// of the tensor of the reference. Memory is a slab, whatever the size of a tile.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

// The dtype in which both can be compared: their own where it is one, else the narrower of two
// floats, to which the wider one is rounded. Nothing where they have none.
std::optional<Dtype> common_dtype(Dtype a, Dtype b);

struct BoxContent {
  std::string hash;  // 16 bytes: equal for equal elements, as far as boxes of one size go
  // Distinct elements that are not zero: at most kMaxValues of them.
  std::set<std::uint64_t> values;
};
inline constexpr std::size_t kMaxValues = 16;

// Boxes of one tensor whose chunks tile it, as elements of `dtype`. Answers about boxes are kept.
class TensorBoxes {
 public:
  // `progress` hears of every slab that was read; may be null. `decoded_bytes`: of items that are
  // kept decoded (BoxReader).
  TensorBoxes(const Checkpoint& checkpoint, TensorId tensor, Dtype dtype,
              Progress* progress = nullptr, std::uint64_t decoded_bytes = 0);

  // Its elements, row-major; nothing where they cannot all be read.
  std::optional<Bytes> elements(const Box& box) { return read(chunks_in(box), box); }
  // The leading elements of the box, 4 KiB at most, and their hash: what differs there differs.
  std::optional<Bytes> start(const Box& box);
  std::optional<std::string> start_of(const Box& box);
  std::optional<BoxContent> content_of(const Box& box);
  // The same of an item as it was saved, wherever it is said to lie.
  std::optional<Bytes> start(ChunkId chunk, const Extents& sizes);
  std::optional<std::string> start_of(ChunkId chunk, const Extents& sizes);
  std::optional<BoxContent> content_of(ChunkId chunk, const Extents& sizes);
  // A box of its elements, as it lies in the item.
  std::optional<Bytes> part(ChunkId chunk, const Box& inside);
  // The values among its leading elements, as many as start_of looks at.
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
  BoxReader items_;
  std::map<Key, ChunkId> by_box_;
  std::map<Key, std::optional<std::string>> starts_;
  std::map<Key, std::optional<BoxContent>> contents_;
};

}  // namespace shw
