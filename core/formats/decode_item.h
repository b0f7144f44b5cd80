// Decodes an item once, into a temporary file or into memory, so that its elements can be read in
// any order.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/scratch.h"
#include "core/model/checkpoint.h"

namespace shw {

// The elements as read_chunk() returns them, in `scratch`, a new file that the source
// keeps open. Elements that must be reordered, byte-swapped or negated take twice the
// space.
Result<std::shared_ptr<const ByteSource>> decode_item(const Checkpoint& checkpoint, ChunkId chunk,
                                                      std::shared_ptr<ScratchFile> scratch,
                                                      const Progress* progress);
// Decodes the elements into memory, about `length` bytes.
Result<Bytes> decode_item(const Checkpoint& checkpoint, ChunkId chunk, std::uint64_t length,
                          const Progress* progress);

}  // namespace shw
