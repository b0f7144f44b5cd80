// A planned chunk that keeps its item, but not where its record says: `item` with one piece in
// `side`, whose offset and length are those of the whole item in one of the checkpoint's own data
// files (rule shared-storage). Of a tile that the list lacked `item` is only one like it: whose
// items are written the same way (rule tile-unlisted).
#pragma once

#include <optional>

#include "core/repair/plan/plan_types.h"

namespace shw {

// Nothing where the record is right, or the file is none of the checkpoint.
std::optional<ItemPlace> place_elsewhere(const Checkpoint& checkpoint, const PlannedChunk& chunk);

}  // namespace shw
