#include "core/formats/items/tensor_box.h"

#include "core/base/checked.h"
#include "core/formats/items/item_access.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxElements = 16 << 20;  // per read

}  // namespace

Result<std::vector<Box>> read_tensor_box(ItemCursor& items, TensorId tensor, const Box& box,
                                         std::span<std::byte> to, Progress* progress) {
  const Checkpoint& checkpoint = items.checkpoint();
  const std::size_t element = size_of(checkpoint.dtype(tensor));
  const Extents strides = row_major_strides(box.sizes);
  std::vector<Box> read;
  Bytes bytes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const Box own = box_of(checkpoint, chunk);
    if (!is_valid_box(own, strides.size())) continue;
    const auto common = intersect(own, box);
    if (!common || is_empty(*common)) continue;
    for (Box slab : split_into_row_boxes(common->sizes, kMaxElements)) {
      if (is_cancelled(progress)) return cancelled_error();
      std::int64_t at = 0;
      for (std::size_t d = 0; d < strides.size(); ++d) {
        slab.offsets[d] += common->offsets[d];
        at += (slab.offsets[d] - box.offsets[d]) * strides[d];
        slab.offsets[d] -= own.offsets[d];
      }
      SHW_CHECK(items.read(chunk, slab, bytes));
      copy_strided({bytes, row_major_strides(slab.sizes), 0}, {to, strides, at}, slab.sizes,
                   element);
      if (progress != nullptr) progress->add(bytes.size());
    }
    read.push_back(*common);
    for (std::size_t d = 0; d < strides.size(); ++d) read.back().offsets[d] -= box.offsets[d];
  }
  return read;
}

}  // namespace shw
