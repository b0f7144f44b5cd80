// Copies between the bytes of a box and those of its whole tensor, both row-major.
#pragma once

#include <cstddef>

#include "core/base/bytes.h"
#include "core/tensor/shape.h"

namespace shw {

// `from`: the box packed, `to`: the whole tensor of `shape`, elements of `width` bytes.
void put_box(BytesView from, const Box& box, const Extents& shape, std::size_t width, Bytes& to);
// `from`: the whole tensor; `to` becomes the box packed.
void take_box(BytesView from, const Box& box, const Extents& shape, std::size_t width, Bytes& to);

}  // namespace shw
