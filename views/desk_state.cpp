#include "views/desk_state.h"

namespace shw {

std::optional<ChunkId> current_tile(const Frame& frame, const DeskState& state) {
  auto valid = [&](std::optional<ChunkId> chunk) {
    return chunk && frame.snapshot.checkpoint != nullptr &&
           index_of(*chunk) < frame.snapshot.checkpoint->chunk_count();
  };
  for (auto chunk : {state.map.pinned, state.map.hovered, frame.snapshot.chunk}) {
    if (valid(chunk)) return chunk;
  }
  return std::nullopt;
}

}  // namespace shw
