// All elements of a box of a chunk, in pieces that follow each other as they lie in its storage:
// for who does not ask in which order they come. Whatever the strides are, each byte is read once
// and an item is decoded once, and nothing larger than a piece is held.
#pragma once

#include <functional>

#include "core/formats/box_reader.h"

namespace shw {

// A chunk-local box and its elements, row-major and little-endian.
using TakeBox = std::function<Status(const Box& box, BytesView elements)>;

// kDamaged where the item is of another dtype or other sizes than its chunk is recorded. Ends with
// the first error that `take` gives.
Status pass_boxes(BoxReader& reader, ChunkId chunk, const Box& all, const TakeBox& take,
                  const Progress* progress);

}  // namespace shw
