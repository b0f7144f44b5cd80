// A plane of elements turned: rows of the source become columns of the target.
#pragma once

#include <cstddef>

#include "core/tensor/layout.h"

namespace shw {

// True where along `rows` the source, and along `columns` the target, holds its elements of
// `item_size` bytes side by side, and the other two strides are positive: what turn_plane can do.
bool is_turned(const PairDim& rows, const PairDim& columns, std::size_t item_size);

// Copies the plane; strides in bytes. `item_size` is 1, 2 or 4: wider elements gain nothing over
// one by one.
void turn_plane(const std::byte* source, std::byte* target, const PairDim& rows,
                const PairDim& columns, std::size_t item_size);

}  // namespace shw
