#include "core/maps/box_bytes.h"

#include <cstring>

namespace shw {
namespace {

// Calls row(byte in the packed box, byte in the whole tensor, bytes) for each row of the box, as
// far as `packed` bytes reach.
template <class Row>
void each_row(const Box& box, const Extents& shape, std::size_t width, std::size_t packed,
              const Row& row) {
  const Extents strides = row_major_strides(shape);
  const std::size_t ndim = shape.size();
  const std::size_t run = (ndim == 0 ? 1 : static_cast<std::size_t>(box.sizes.back())) * width;
  Extents at(ndim, 0);
  for (std::size_t done = 0; run > 0 && done + run <= packed; done += run) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < ndim; ++d) place += (box.offsets[d] + at[d]) * strides[d];
    row(done, static_cast<std::size_t>(place) * width, run);
    for (std::size_t d = ndim; d-- > 1;) {
      if (++at[d - 1] < box.sizes[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

}  // namespace

void put_box(BytesView from, const Box& box, const Extents& shape, std::size_t width, Bytes& to) {
  each_row(box, shape, width, from.size(), [&](std::size_t in, std::size_t whole, std::size_t run) {
    std::memcpy(to.data() + whole, from.data() + in, run);
  });
}

void take_box(BytesView from, const Box& box, const Extents& shape, std::size_t width, Bytes& to) {
  to.resize(static_cast<std::size_t>(volume(box.sizes).value_or(0)) * width);
  each_row(box, shape, width, to.size(), [&](std::size_t in, std::size_t whole, std::size_t run) {
    std::memcpy(to.data() + in, from.data() + whole, run);
  });
}

}  // namespace shw
