#include "core/repair/plan/planned_tiling.h"

namespace shw {

TiledTensor planned_tiling(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  TiledTensor tiling{planned.shape, {}};
  for (const PlannedChunk& chunk : planned.chunks) {
    std::optional<std::uint32_t> writer = chunk.writer;
    if (chunk.item && chunk.external.empty()) writer = checkpoint.writer(*chunk.item);
    tiling.tiles.push_back({chunk.box, writer});
  }
  return tiling;
}

}  // namespace shw
