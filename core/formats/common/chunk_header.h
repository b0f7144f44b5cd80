// Headers of items that do not describe themselves: dtype, sizes and strides are the checkpoint's.
#pragma once

#include "core/base/result.h"
#include "core/formats/common/item_reader.h"
#include "core/model/checkpoint.h"

namespace shw {

// The strides of the chunk's view in elements, or row-major ones.
Extents chunk_strides(const Checkpoint& checkpoint, ChunkId chunk);

// Without a payload length.
ItemHeader chunk_header(const Checkpoint& checkpoint, ChunkId chunk, const ItemRange& range);

// Like chunk_header(), with payload_length set to the span from the chunk's first element to its
// last. An error if that overflows.
Result<ItemHeader> whole_chunk_header(const Checkpoint& checkpoint, ChunkId chunk,
                                      const ItemRange& range);

}  // namespace shw
