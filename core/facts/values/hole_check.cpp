#include "core/facts/values/hole_check.h"

#include <algorithm>

#include "core/tiles/coverage.h"

namespace shw {

// Checks all bytes from the box's first to its last element, which for non-contiguous rows is more
// than the box.
bool HoleCheck::is_hole(ChunkId chunk, const Box& inside) {
  auto storage = boxes_.storage(chunk);
  if (!storage || !storage->is_stored || is_empty(inside)) return false;
  std::int64_t first = storage->first, last = storage->first;
  for (std::size_t d = 0; d < inside.sizes.size(); ++d) {
    const std::int64_t stride = storage->strides[d];
    if (stride < 0) return false;
    first += inside.offsets[d] * stride;
    last += (inside.offsets[d] + inside.sizes[d] - 1) * stride;
  }
  auto source = boxes_.stored(*storage);
  if (!source) return false;
  const auto begin = static_cast<std::uint64_t>(first);
  const std::uint64_t length = static_cast<std::uint64_t>(last - first) +
                               size_of(checkpoint_.dtype(checkpoint_.tensor_of(chunk)));
  const auto extents = (*source)->extents(begin, length);
  return !extents.empty() && std::all_of(extents.begin(), extents.end(),
                                         [](const Extent& extent) { return extent.hole; });
}

bool HoleCheck::is_hole(ChunkId chunk) {
  return is_hole(chunk, whole(checkpoint_.sizes(chunk)));
}

bool HoleCheck::is_hole(TensorId tensor, const Box& box) {
  for (ChunkId chunk : checkpoint_.chunks(tensor)) {
    const Box saved = box_of(checkpoint_, chunk);
    auto common = intersect(saved, box);
    if (!common || is_empty(*common)) continue;
    for (std::size_t d = 0; d < saved.offsets.size(); ++d) common->offsets[d] -= saved.offsets[d];
    if (!is_hole(chunk, *common)) return false;
  }
  return true;
}

}  // namespace shw
