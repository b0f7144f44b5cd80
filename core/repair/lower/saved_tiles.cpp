#include "core/repair/lower/saved_tiles.h"

#include "core/repair/lower/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {

std::optional<std::vector<Box>> saved_holes_of(const Checkpoint& checkpoint, TensorId tensor) {
  if (!check_chunks_are_boxes(checkpoint, tensor)) return std::nullopt;
  auto boxes = chunk_boxes(checkpoint, tensor);
  if (tiles_exactly(boxes, checkpoint.shape(tensor))) return std::vector<Box>{};
  return complement(boxes, checkpoint.shape(tensor));
}

}  // namespace shw
