// The order in which the slices of a tensor along one dim stand.
#pragma once

#include "core/maps/held_tensor.h"
#include "core/model/diagnosis.h"

namespace shw {

// By slice that is expected: the slice that holds it. Each is used once; empty where one is
// nowhere. `shaped` says shape and dtype of both. From `padding_from` on any slice will do; 0:
// none.
Extents slice_order(const HeldTensor& shaped, std::size_t dim, BytesView there, BytesView expected,
                    std::int64_t padding_from = 0);

// In blocks of the most slices that stay together everywhere.
BlocksPermuted in_blocks(TensorId tensor, std::size_t dim, const Extents& order);

}  // namespace shw
