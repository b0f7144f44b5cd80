// Elements of an old chunk with their dims in the order of the new one.
#pragma once

#include "core/io/source.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// `box` lies in the new chunk, inside what `piece` fills; `bytes` are the old chunk, row-major, of
// `chunk_sizes`. What comes back is row-major of the box's sizes.
Bytes in_new_order(const Piece& piece, const Box& box, ExtentsView chunk_sizes, BytesView bytes,
                   std::size_t element);

}  // namespace shw
