// Damage that loses elements: retained elements move to their correct place, all others are lost
// and filled. One new chunk per retained chunk, written by the same rank; a chunk that is retained
// whole keeps its item. Lost boxes become separate chunks, so that no rank's file claims elements
// that the rank never had.
#include <algorithm>

#include "core/formats/items/items.h"
#include "core/repair/lower/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

bool can_cast_from(const Checkpoint& checkpoint, const PartlyLost& diagnosis) {
  auto source =
      diagnosis.refill_from.empty() ? std::nullopt : checkpoint.find(diagnosis.refill_from);
  return source && *source != diagnosis.tensor &&
         same(checkpoint.shape(*source), diagnosis.expected);
}

// True if the retained elements are all elements of the item. If the metadata gives the chunk
// another size, the item's header decides.
bool is_whole_item(const Checkpoint& checkpoint, const RetainedChunk& retained_chunk) {
  if (retained_chunk.source == whole(checkpoint.sizes(retained_chunk.chunk))) return true;
  if (std::any_of(retained_chunk.source.offsets.begin(), retained_chunk.source.offsets.end(),
                  [](std::int64_t offset) { return offset != 0; }))
    return false;
  auto header = read_item_header(checkpoint, retained_chunk.chunk);
  return header && header->sizes == retained_chunk.source.sizes;
}

PlannedChunk plan_retained_chunk(const Checkpoint& checkpoint, TensorId tensor,
                                 const RetainedChunk& retained_chunk) {
  PlannedChunk chunk;
  chunk.box = Box{retained_chunk.at, retained_chunk.source.sizes};
  chunk.writer = checkpoint.writer(retained_chunk.chunk).value_or(0);
  bool is_whole = is_whole_item(checkpoint, retained_chunk);
  bool same_dtype =
      checkpoint.dtype(checkpoint.tensor_of(retained_chunk.chunk)) == checkpoint.dtype(tensor);
  if (is_whole && same_dtype) {
    chunk.item = retained_chunk.chunk;
  } else {
    chunk.pieces.push_back(
        {retained_chunk.chunk, retained_chunk.source, Extents(retained_chunk.at.size(), 0)});
  }
  return chunk;
}

}  // namespace

Result<PlannedTensor> lower_partly_lost(const Checkpoint& checkpoint, const PartlyLost& diagnosis) {
  PlannedTensor planned;
  planned.tensor = diagnosis.tensor;
  planned.shape = diagnosis.expected;
  std::vector<Box> kept;
  for (const RetainedChunk& retained_chunk : diagnosis.retained_chunks) {
    if (index_of(retained_chunk.chunk) >= checkpoint.chunk_count())
      return cannot_lower(checkpoint, diagnosis.tensor, "the chunk of a kept shard does not exist");
    if (!is_inside(retained_chunk.at, retained_chunk.source.sizes, diagnosis.expected))
      return cannot_lower(checkpoint, diagnosis.tensor,
                          "a kept shard is outside the corrected tensor");
    if (is_empty(retained_chunk.source)) continue;  // this rank owns nothing of the tensor
    const PlannedChunk placed = plan_retained_chunk(checkpoint, diagnosis.tensor, retained_chunk);
    planned.chunks.push_back(placed);
    kept.push_back(placed.box);
  }
  auto lost = complement(kept, diagnosis.expected);
  auto count = lost ? total_volume(*lost) : std::nullopt;
  if (!count)
    return cannot_lower(checkpoint, diagnosis.tensor,
                        "the lost elements are in too many separate boxes");
  planned.lost = std::move(*lost);
  planned.lost_elements = *count;
  std::uint32_t writer = planned.chunks.empty() ? 0 : planned.chunks.front().writer;
  for (const Box& box : planned.lost) {
    PlannedChunk filled;
    filled.box = box;
    filled.writer = writer;
    planned.chunks.push_back(std::move(filled));
  }
  if (planned.lost_elements != 0 && can_cast_from(checkpoint, diagnosis)) {
    planned.fill = Fill::kCast;
    planned.fill_from = diagnosis.refill_from;
  }
  return planned;
}

}  // namespace shw
