// Rule shared-storage: tiles, shape and names stay; the recorded place of some items changes. No
// bytes are copied.
#include <map>

#include "core/repair/lower/lower.h"

namespace shw {

Result<PlannedTensor> lower_repointed(const Checkpoint& checkpoint,
                                      const WrongItemRecords& diagnosis) {
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = copy_of(checkpoint.shape(diagnosis.tensor));
  std::map<ChunkId, const CorrectItemPlace*> places;
  for (const CorrectItemPlace& place : diagnosis.places) {
    if (index_of(place.file) >= checkpoint.files().size())
      return cannot_lower(checkpoint, diagnosis.tensor,
                          "a new position is in no file of this checkpoint");
    places.emplace(place.chunk, &place);
  }
  if (places.empty() || places.size() != diagnosis.places.size())
    return cannot_lower(checkpoint, diagnosis.tensor,
                        "the plan must give one new position per chunk");
  std::size_t placed = 0;
  for (ChunkId id : checkpoint.chunks(diagnosis.tensor)) {
    PlannedChunk chunk;
    chunk.box = box_of(checkpoint, id);
    chunk.item = id;
    chunk.writer = checkpoint.writer(id).value_or(0);
    if (auto found = places.find(id); found != places.end()) {
      const CorrectItemPlace& place = *found->second;
      chunk.external = {{checkpoint.file(place.file).path, place.offset, place.length,
                         checkpoint.dtype(diagnosis.tensor), chunk.box.sizes, chunk.box.offsets}};
      ++placed;
    }
    planned.chunks.push_back(std::move(chunk));
  }
  if (placed != places.size())
    return cannot_lower(checkpoint, diagnosis.tensor,
                        "a new position is for a chunk of another tensor");
  return planned;
}

}  // namespace shw
