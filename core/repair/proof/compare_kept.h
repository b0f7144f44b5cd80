// Compares a tile that should be unchanged with its item in the source, whatever that item's record
// says. Needs memory for a few blocks only, whatever the size of the tile.
#pragma once

#include <optional>

#include "core/formats/items/item_cursor.h"
#include "core/repair/proof/mismatch.h"
#include "core/transform/target_state.h"

namespace shw {

// The readers of both sides for a tile, and where results go.
struct Comparing {
  ItemCursor& source;
  ItemCursor& written;
  ChunkId at;
  Progress* progress = nullptr;
  // If not null: set if an element differs.
  std::optional<Mismatch>* mismatch = nullptr;
  std::int64_t* compared = nullptr;  // grows by the number of elements compared
};

// `tile.kept` must be set: the source chunk whose item was written as this tile.
Status compare_kept(const Comparing& comparing, const TargetChunk& tile);

}  // namespace shw
