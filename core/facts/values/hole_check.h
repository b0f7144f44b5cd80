// Whether elements are zeros that take no disk: what was never written, as in a checkpoint whose
// values do not matter. Asking reads a header, and no element.
#pragma once

#include "core/formats/box_reader.h"
#include "core/model/checkpoint.h"

namespace shw {

// For one thread.
class HoleCheck {
 public:
  // `checkpoint` outlives it.
  explicit HoleCheck(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), boxes_(checkpoint, /*decoded_bytes=*/0) {}
  // All elements of the chunk. False where it cannot be told.
  bool is_hole(ChunkId chunk);
  // All elements of a box of the tensor, which its chunks fill.
  bool is_hole(TensorId tensor, const Box& box);

 private:
  bool is_hole(ChunkId chunk, const Box& inside);

  const Checkpoint& checkpoint_;
  BoxReader boxes_;
};

}  // namespace shw
