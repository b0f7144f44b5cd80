// Holds what was written against what it was made of. Goes by the plan and reads boxes, and shares
// nothing with the program that made it: a mistake in lowering shows here. Memory is that of a few
// blocks, whatever the size of a tile.
#pragma once

#include <optional>

#include "core/formats/box_reader.h"
#include "core/repair/plan/plan_types.h"
#include "core/repair/proof/mismatch.h"

namespace shw {

// A chunk that was written, and what both sides are read with.
struct Comparing {
  BoxReader& source;
  BoxReader& written;
  ChunkId at;
  Progress* progress = nullptr;
  // Filled where an element is another one, if it is not null.
  std::optional<Mismatch>* mismatch = nullptr;
  std::int64_t* compared = nullptr;  // grows by every element that was held against its own
};

// Every piece, side piece and fill of `chunk` is in the chunk that was written.
Status compare_payload(const PlannedTensor& tensor, const PlannedChunk& chunk,
                       const Comparing& comparing);
// The item of the source, whatever its record says of it, is the chunk that was written.
Status compare_item(const Comparing& comparing, ChunkId item);
// The same of a planned chunk that keeps its item, which may lie where no record says.
Status compare_kept(const Comparing& comparing, const PlannedChunk& chunk);

}  // namespace shw
