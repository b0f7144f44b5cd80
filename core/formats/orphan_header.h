#pragma once

#include "core/formats/items.h"

namespace shw {

// The header of a item that no record points to, as if it were the item of `chunk`
// (with its transforms).
Result<ItemHeader> read_orphan_header(const Checkpoint& checkpoint, ChunkId chunk, ItemPlace place);

}  // namespace shw
