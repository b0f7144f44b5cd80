// Finds the order of a tensor's slices along one dim.
#pragma once

#include "core/maps/loaded_tensor.h"
#include "core/model/diagnosis.h"

namespace shw {

// By expected slice: the saved slice with its content. Each saved slice is used once; empty if one
// is missing. `shaped` has the shape and dtype of both. From `padding_from` on any slice fits; 0:
// no padding.
Extents slice_order(const LoadedTensor& shaped, std::size_t dim, BytesView there,
                    BytesView expected, std::int64_t padding_from = 0);

// Groups the order into the largest blocks that stay together everywhere.
BlocksPermuted in_blocks(TensorId tensor, std::size_t dim, const Extents& order);

}  // namespace shw
