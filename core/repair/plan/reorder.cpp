#include "core/repair/plan/reorder.h"

#include "core/tensor/strided_copy.h"

namespace shw {

Bytes in_new_order(const Piece& piece, const Box& box, ExtentsView chunk_sizes, BytesView bytes,
                   std::size_t element) {
  Extents old_strides = row_major_strides(chunk_sizes), strides;
  std::int64_t first = 0;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    auto old = static_cast<std::size_t>(piece.permutation[d]);
    strides.push_back(old_strides[old]);
    first += (piece.source.offsets[old] + box.offsets[d] - piece.at[d]) * old_strides[old];
  }
  Bytes out(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * element);
  // In squares that stay in the cache on both sides; layout.cpp.
  copy_strided({bytes, strides, first}, {out, row_major_strides(box.sizes), 0}, box.sizes, element);
  return out;
}

}  // namespace shw
