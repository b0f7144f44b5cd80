// An item that has to be decoded, decoded once: into a file, so that its elements can be read in
// any order and nothing of its length is held in memory, or into memory.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/scratch.h"
#include "core/model/checkpoint.h"

namespace shw {

// What read_chunk() gives, in `scratch`, which is new and which the source holds on to. Where the
// elements do not lie in their own order, are of another byte order or have signs to be flipped,
// they stand in it twice.
Result<std::shared_ptr<const ByteSource>> decode_item(const Checkpoint& checkpoint, ChunkId chunk,
                                                      std::shared_ptr<ScratchFile> scratch,
                                                      const Progress* progress);
// The same in memory, of about `length` bytes.
Result<Bytes> decode_item(const Checkpoint& checkpoint, ChunkId chunk, std::uint64_t length,
                          const Progress* progress);

}  // namespace shw
