// Delivers all elements of a box of a chunk in storage order, for computations that do not depend
// on element order. Each byte is read once and an item is decoded once, whatever the strides;
// memory is one piece.
#pragma once

#include <functional>

#include "core/formats/box_reader.h"

namespace shw {

// Receives a box relative to the chunk and its elements, row-major and little-endian.
using TakeBox = std::function<Status(const Box& box, BytesView elements)>;

// kDamaged if the item has another dtype or shape than its chunk's record. Stops at the first error
// of `take`.
Status pass_boxes(BoxReader& reader, ChunkId chunk, const Box& all, const TakeBox& take,
                  const Progress* progress);

}  // namespace shw
