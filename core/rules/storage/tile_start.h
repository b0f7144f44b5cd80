// What a tile holds, told by where it begins: enough to know that training made it.
#pragma once

#include "core/formats/box_reader.h"
#include "core/model/checkpoint.h"

namespace shw {

// Different numbers among the first 65,536 elements, zero aside; at most `most`. None where they
// cannot be read.
std::size_t numbers_at_start(const Checkpoint& checkpoint, ChunkId chunk, std::size_t most,
                             BoxReader& reader);

}  // namespace shw
