// A planned chunk whose item is not where its record says: `item` with one external piece whose
// offset and length are those of the whole item in a data file of the checkpoint (rule
// shared-storage). For a tile that the metadata does not list (rule tile-unlisted), `item` is only
// an example of how items are encoded.
#pragma once

#include <optional>

#include "core/repair/plan/plan_types.h"

namespace shw {

// nullopt if the record is right or the file does not belong to the checkpoint.
std::optional<ItemPlace> external_item_place(const Checkpoint& checkpoint,
                                             const PlannedChunk& chunk);

}  // namespace shw
