#include "core/facts/values/box_bytes.h"

#include <cstring>

namespace shw {

bool read_box_of(const PiecedTensor& tensor, const Box& box, Bytes& bytes) {
  const std::size_t width = size_of(tensor.dtype);
  bytes.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * width);
  const Extents strides = row_major_strides(box.sizes);
  return tensor.pass(box, [&](const Box& piece, BytesView elements) {
    Box inside = piece;
    for (std::size_t d = 0; d < inside.offsets.size(); ++d) inside.offsets[d] -= box.offsets[d];
    each_row(inside, elements, width, strides, [&](const Extents&, std::int64_t at, BytesView row) {
      std::memcpy(bytes.data() + static_cast<std::size_t>(at) * width, row.data(), row.size());
    });
  });
}

}  // namespace shw
