#include "core/repair/lower/saved_tiles.h"

#include "core/repair/lower/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {

std::optional<std::vector<Box>> holes_of(const Checkpoint& checkpoint, TensorId tensor) {
  if (!check_chunks_are_boxes(checkpoint, tensor)) return std::nullopt;
  auto boxes = chunk_boxes(checkpoint, tensor);
  if (tiles_exactly(boxes, checkpoint.shape(tensor))) return std::vector<Box>{};
  return complement(boxes, checkpoint.shape(tensor));
}

bool tiles_lie_inside(const Checkpoint& checkpoint, TensorId tensor) {
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
    if (volume(sizes) != 0 && !lies_inside(offsets, sizes, checkpoint.shape(tensor))) return false;
  }
  return true;
}

bool has_overlap(const Checkpoint& checkpoint, TensorId tensor) {
  auto boxes = chunk_boxes(checkpoint, tensor);
  return !tiles_exactly(boxes, checkpoint.shape(tensor)) && !are_disjoint(boxes);
}

}  // namespace shw
