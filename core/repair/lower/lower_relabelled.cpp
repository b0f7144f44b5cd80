// Correct bytes under wrong boxes. Every chunk keeps its item and gets the box of the diagnosis.
#include "core/repair/lower/lower.h"

namespace shw {

Result<PlannedTensor> lower_relabelled(const Checkpoint& checkpoint, const WrongBoxes& diagnosis) {
  auto chunks = checkpoint.chunks(diagnosis.tensor);
  if (diagnosis.boxes.size() != chunks.size())
    return cannot_lower(checkpoint, diagnosis.tensor, "not every chunk has a new box");
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = diagnosis.expected;
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    PlannedChunk chunk;
    chunk.box = diagnosis.boxes[i];
    chunk.item = chunks[i];
    chunk.writer = checkpoint.writer(chunks[i]).value_or(0);
    planned.chunks.push_back(std::move(chunk));
  }
  return planned;
}

}  // namespace shw
