// Detects elements in file holes, which were never written, as in checkpoints without values. Reads
// a header and no elements.
#pragma once

#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"

namespace shw {

// Not thread-safe.
class HoleCheck {
 public:
  // `checkpoint` must outlive this object.
  explicit HoleCheck(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), boxes_(checkpoint, /*decoded_bytes=*/0) {}
  // True if all elements of the chunk are in a hole; false if unknown.
  bool is_hole(ChunkId chunk);
  // True if all elements of a box are in holes; chunks must fill the box.
  bool is_hole(TensorId tensor, const Box& box);

 private:
  bool is_hole(ChunkId chunk, const Box& inside);

  const Checkpoint& checkpoint_;
  ItemCursor boxes_;
};

}  // namespace shw
