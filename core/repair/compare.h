// Holds what was written against what it was made of. Goes by the plan and reads boxes, and shares
// nothing with the program that made it: a mistake in lowering shows here. Memory is that of a few
// blocks, whatever the size of a tile.
#pragma once

#include "core/formats/box_reader.h"
#include "core/repair/plan_types.h"

namespace shw {

// Every piece, side piece and fill of `chunk` is in the chunk `at` that was written.
Status compare_payload(const PlannedTensor& tensor, const PlannedChunk& chunk, BoxReader& source,
                       BoxReader& written, ChunkId at, Progress* progress);

// XXH3-128 of the row-major elements of `chunk`, put together from its pieces in `source`.
Result<std::string> hash_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                                 BoxReader& source, Progress* progress);

}  // namespace shw
