// A whole tensor in pieces, for what is asked of all its elements and not of their order: nothing
// larger than a piece is held, whatever the size of the tensor and of its tiles.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/bytes.h"
#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"
#include "core/tensor/tile_fingerprint.h"

namespace shw {

// A box of the tensor, and its elements, row-major and little-endian.
using TakePiece = std::function<void(const Box& box, BytesView elements)>;

struct PiecedTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  // Gives every element of the box once. False where they cannot all be read, or somebody stopped
  // it: what was given then says nothing.
  std::function<bool(const Box& box, const TakePiece& take)> pass;
};

// As elements of `dtype` (Dtype::kUnknown: its own). Nothing where its tiles do not fill it
// exactly, or none of it can be read. `progress`, which may be null, hears of what is read.
std::optional<PiecedTensor> pieces_of(const Checkpoint& checkpoint, TensorId tensor,
                                      Dtype dtype = Dtype::kUnknown, Progress* progress = nullptr);

// With strides in elements.
std::int64_t index_at(ExtentsView offsets, ExtentsView strides);

// Of the whole tensor, as its elements stand.
std::optional<Fingerprint> fingerprint_of(const PiecedTensor& tensor);

// Calls row(index, bytes) for each row of a piece: the index of its first element among the
// tensor's, and its elements, which are neighbours there.
template <class Row>
void each_row(const Box& box, BytesView elements, std::size_t element, ExtentsView strides,
              Row row) {
  const std::size_t ndim = box.sizes.size();
  const auto length = static_cast<std::size_t>(ndim == 0 ? 1 : box.sizes[ndim - 1]) * element;
  Extents at = box.offsets;
  for (std::size_t byte = 0; byte < elements.size(); byte += length) {
    row(at, index_at(at, strides), elements.subspan(byte, length));
    for (std::size_t d = ndim == 0 ? 0 : ndim - 1; d-- > 0;) {
      if (++at[d] < box.offsets[d] + box.sizes[d]) break;
      at[d] = box.offsets[d];
    }
  }
}

}  // namespace shw
