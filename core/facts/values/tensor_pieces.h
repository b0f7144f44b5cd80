// Iterates over a tensor in pieces, for computations that do not depend on element order. Memory is
// bounded by the piece size, not by tensor or chunk sizes.
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

// Receives a box of the tensor and its elements, row-major and little-endian.
using PieceSink = std::function<void(const Box& box, BytesView elements)>;

struct PiecedTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents shape;
  // Delivers every element of the box once. Returns false if they cannot all be read or if
  // cancelled; what was delivered is then void.
  std::function<bool(const Box& box, const PieceSink& take)> pass;
  // Reads the elements of a box, row-major. Reuses the memory of `to`. False as pass().
  std::function<bool(const Box& box, Bytes& to)> read = {};
};

// The pieces as `dtype` (kUnknown: the tensor's own). nullopt unless the chunks tile the tensor
// exactly and some can be read. `progress` counts read bytes; may be null.
std::optional<PiecedTensor> pieces_of(const Checkpoint& checkpoint, TensorId tensor,
                                      Dtype dtype = Dtype::kUnknown, Progress* progress = nullptr);

// Linear index; strides in elements.
std::int64_t index_at(ExtentsView offsets, ExtentsView strides);

// Fingerprint of the whole tensor.
std::optional<Fingerprint> fingerprint_of(const PiecedTensor& tensor);

// Calls row(index, bytes) for each row of a piece: the tensor index of its first element, and its
// contiguous elements.
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
