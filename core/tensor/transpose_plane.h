// Transposes a two-dimensional plane of elements.
#pragma once

#include <cstddef>

#include "core/tensor/layout.h"

namespace shw {

// True if the source is contiguous along `rows`, the target along `columns`, and the other two
// strides are positive: the requirements of transpose_plane.
bool is_turned(const PairDim& rows, const PairDim& columns, std::size_t item_size);

// Transposes the plane; strides in bytes. `item_size` must be 1, 2 or 4: wider elements gain
// nothing over a plain loop.
void transpose_plane(const std::byte* source, std::byte* target, const PairDim& rows,
                     const PairDim& columns, std::size_t item_size);

}  // namespace shw
