// Judges by the first elements of a chunk whether it holds trained values.
#pragma once

#include "core/formats/items/item_cursor.h"
#include "core/model/checkpoint.h"

namespace shw {

// Number of distinct non-zero values among the first 65,536 elements, at most `most`; 0 if
// unreadable.
std::size_t distinct_values_at_start(const Checkpoint& checkpoint, ChunkId chunk, std::size_t most,
                                     ItemCursor& reader);

}  // namespace shw
