// Holds a tile that was to stay as it is against the item that it was, whatever the record of that
// says. Memory is that of a few blocks, whatever the size of a tile.
#pragma once

#include <optional>

#include "core/formats/box_reader.h"
#include "core/repair/proof/mismatch.h"
#include "core/transform/target_state.h"

namespace shw {

// A tile that was written, and what both sides are read with.
struct Comparing {
  BoxReader& source;
  BoxReader& written;
  ChunkId at;
  Progress* progress = nullptr;
  // Filled where an element is another one, if it is not null.
  std::optional<Mismatch>* mismatch = nullptr;
  std::int64_t* compared = nullptr;  // grows by every element that was held against its own
};

// `tile.kept` is set: its item is the tile that was written.
Status compare_kept(const Comparing& comparing, const TargetChunk& tile);

}  // namespace shw
