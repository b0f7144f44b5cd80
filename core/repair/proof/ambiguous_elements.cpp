#include "core/repair/proof/ambiguous_elements.h"

#include "core/base/words.h"
#include "core/tiles/coverage.h"

namespace shw {
namespace {

std::string tile_place_text(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  return to_text(box_of(checkpoint, chunk)) +
         (item ? " in " + checkpoint.file(item->file).path : "");
}

bool have_equal_elements(const Checkpoint& checkpoint, ChunkId a, ChunkId b,
                         const ItemHashes& hashes) {
  const Hash128 &one = hashes[index_of(a)], &other = hashes[index_of(b)];
  return same(checkpoint.offsets(a), checkpoint.offsets(b)) &&
         same(checkpoint.sizes(a), checkpoint.sizes(b)) && one != kNoHash && one == other;
}

void add_overlaps(const Checkpoint& checkpoint, TensorId tensor, const TilingDefects& defects,
                  const ItemHashes& hashes, AmbiguousElements& out) {
  auto chunks = checkpoint.chunks(tensor);
  std::size_t pairs = 0;
  const Overlap* first = nullptr;
  for (const Overlap& overlap : defects.overlaps) {
    if (have_equal_elements(checkpoint, chunks[overlap.first], chunks[overlap.second], hashes))
      continue;
    out.boxes.push_back(overlap.box);
    if (++pairs == 1) first = &overlap;
  }
  if (first == nullptr) return;
  out.by_two = "its chunks " + tile_place_text(checkpoint, chunks[first->first]) + " and " +
               tile_place_text(checkpoint, chunks[first->second]) + " hold the same elements" +
               (pairs > 1 ? " (and so do " + plural(pairs - 1, "more pair") + ")" : "");
}

void add_outside(const Checkpoint& checkpoint, TensorId tensor, AmbiguousElements& out) {
  const Box all = whole(checkpoint.shape(tensor));
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const Box box = box_of(checkpoint, chunk);
    if (is_empty(box) || is_inside(box.offsets, box.sizes, all.sizes)) continue;
    if (out.outside.empty())
      out.outside = "its chunk " + tile_place_text(checkpoint, chunk) + " reaches beyond " +
                    to_text(all.sizes);
    if (auto inside = intersect(box, all)) out.boxes.push_back(*inside);
  }
}

}  // namespace

AmbiguousElements ambiguous_elements_of(const Checkpoint& checkpoint, TensorId tensor,
                                        const ItemHashes& hashes) {
  AmbiguousElements out;
  const TensorTiling judged = compute_tiling(checkpoint, tensor);
  if (judged.tiling == Tiling::kExact) return out;
  const bool is_all = judged.tiling == Tiling::kMalformed;
  if (is_all)
    out.outside = "a chunk has an invalid box for the shape " + to_text(checkpoint.shape(tensor));
  if (!is_all) add_outside(checkpoint, tensor, out);
  add_overlaps(checkpoint, tensor, judged.defects, hashes, out);
  if (!judged.defects.complete && out.by_two.empty())
    out.by_two = "its chunks overlap in a way too complex to say which elements two of them hold";
  if (is_all || !judged.defects.complete) out.boxes = {whole(checkpoint.shape(tensor))};
  return out;
}

}  // namespace shw
