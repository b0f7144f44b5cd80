// Rules tile-unlisted and storage-dangling: tiles with items stay, and tiles whose records the
// metadata had lost are added. No bytes are copied.
#include "core/repair/lower/lower.h"

namespace shw {

Result<PlannedTensor> lower_relisted(const Checkpoint& checkpoint,
                                     const UnlistedChunks& diagnosis) {
  if (diagnosis.tiles.empty())
    return cannot_lower(checkpoint, diagnosis.tensor, "the plan names no chunk to list again");
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = copy_of(checkpoint.shape(diagnosis.tensor));
  for (ChunkId id : checkpoint.chunks(diagnosis.tensor)) {
    if (!checkpoint.item(id)) continue;
    PlannedChunk chunk;
    chunk.box = box_of(checkpoint, id);
    chunk.item = id;
    chunk.writer = checkpoint.writer(id).value_or(0);
    planned.chunks.push_back(std::move(chunk));
  }
  for (const UnlistedChunk& tile : diagnosis.tiles) {
    if (index_of(tile.file) >= checkpoint.files().size())
      return cannot_lower(checkpoint, diagnosis.tensor,
                          "a chunk's bytes are in no file of this checkpoint");
    PlannedChunk chunk;
    chunk.box = tile.box;
    chunk.item = tile.like;
    chunk.writer = checkpoint.file(tile.file).rank.value_or(0);
    chunk.external = {{checkpoint.file(tile.file).path, tile.offset, tile.length,
                       checkpoint.dtype(diagnosis.tensor), tile.box.sizes, tile.box.offsets}};
    planned.chunks.push_back(std::move(chunk));
  }
  return planned;
}

}  // namespace shw
