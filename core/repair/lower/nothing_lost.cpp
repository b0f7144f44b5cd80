// Proves by geometry that a planned tensor loses nothing; for rows that are cut off, by their
// bytes.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/checked.h"
#include "core/facts/layout/padding.h"
#include "core/repair/lower/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Boxes that the plan uses of one chunk of the checkpoint.
struct UsedBoxes {
  std::vector<Box> boxes;
  bool as_item = false;
};
std::map<std::uint32_t, UsedBoxes> used_chunks(const PlannedTensor& planned) {
  std::map<std::uint32_t, UsedBoxes> used;
  for (const PlannedChunk& chunk : planned.chunks) {
    if (chunk.item) {
      UsedBoxes& one = used[static_cast<std::uint32_t>(*chunk.item)];
      one.boxes.push_back(whole(chunk.box.sizes));
      one.as_item = true;
    }
    for (const Piece& piece : chunk.pieces)
      used[static_cast<std::uint32_t>(piece.chunk)].boxes.push_back(piece.source);
  }
  return used;
}

// Checks that only rows at the end are left out: every element before them is used once.
Status prove_only_trailing_rows_dropped(const Checkpoint& checkpoint,
                                        const PlannedTensor& planned) {
  ExtentsView saved = checkpoint.shape(planned.tensor);
  bool shorter = !saved.empty() && saved.size() == planned.shape.size() && planned.shape[0] > 0 &&
                 planned.shape[0] < saved[0] &&
                 same(saved.subspan(1), ExtentsView(planned.shape).subspan(1));
  if (!shorter || !tiles_exactly(chunk_boxes(checkpoint, planned.tensor), saved))
    return cannot_lower(checkpoint, planned.tensor, "some elements would be dropped");
  for (const auto& [chunk, one] : used_chunks(planned)) {
    if (!are_disjoint(one.boxes))
      return cannot_lower(checkpoint, planned.tensor, "an element would be used twice");
    std::int64_t first = checkpoint.offsets(ChunkId{chunk})[0];
    for (const Box& box : one.boxes) {
      if (first + box.offsets[0] + box.sizes[0] > planned.shape[0])
        return cannot_lower(checkpoint, planned.tensor,
                            "rows other than the last ones would be dropped");
    }
  }
  return {};
}

}  // namespace

Status prove_bijection(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  auto used = used_chunks(planned);
  for (ChunkId chunk : checkpoint.chunks(planned.tensor)) {
    auto found = used.find(static_cast<std::uint32_t>(chunk));
    Extents sizes = copy_of(checkpoint.sizes(chunk));
    if (found == used.end()) {
      if (volume(sizes) == 0) continue;
      return cannot_lower(checkpoint, planned.tensor, "a chunk would be dropped");
    }
    // A relabel may also correct the size. The item's own size then counts; check_item() verified
    // it.
    const UsedBoxes& one = found->second;
    bool as_item = one.as_item && one.boxes.size() == 1 && one.boxes.front().sizes != sizes;
    if (!as_item && !tiles_exactly(one.boxes, sizes))
      return cannot_lower(checkpoint, planned.tensor, "an element would be used twice or not");
    used.erase(found);
  }
  if (!used.empty())
    return cannot_lower(checkpoint, planned.tensor, "the plan uses elements of another tensor");
  return {};
}

Status prove_nothing_lost(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  Status bijection = prove_bijection(checkpoint, planned);
  std::int64_t saved = 0;
  for (ChunkId chunk : checkpoint.chunks(planned.tensor)) {
    auto elements = volume(checkpoint.sizes(chunk));
    auto sum = elements ? checked_add(saved, *elements) : std::nullopt;
    if (!sum) return bijection;
    saved = *sum;
  }
  if (bijection || saved <= volume(planned.shape).value_or(0)) return bijection;
  SHW_CHECK(prove_only_trailing_rows_dropped(checkpoint, planned));
  auto padded = ends_in_padding(checkpoint, planned.tensor, planned.shape[0], true);
  if (padded.value_or(false)) return {};
  return cannot_lower(checkpoint, planned.tensor,
                      "the rows from " + std::to_string(planned.shape[0]) +
                          " on would be dropped, and " +
                          (padded ? "they are not padding, so data would be lost"
                                  : "they cannot be read to see whether they are padding"));
}

Status prove_used_once(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  for (const auto& [chunk, one] : used_chunks(planned)) {
    if (!are_disjoint(one.boxes))
      return cannot_lower(checkpoint, planned.tensor,
                          "an element would be used twice, but can be kept only once");
  }
  return {};
}

namespace {

bool has_external_pieces(const PlannedTensor& planned) {
  return std::any_of(planned.chunks.begin(), planned.chunks.end(),
                     [](const PlannedChunk& chunk) { return !chunk.external.empty(); });
}

// Boxes that the whole plan uses of each chunk in `wanted`. An item is always used whole, whatever
// size its new box has.
std::map<std::size_t, std::vector<Box>> boxes_used_of_chunks(const Checkpoint& checkpoint,
                                                             const Plan& plan,
                                                             const std::set<std::size_t>& wanted) {
  std::map<std::size_t, std::vector<Box>> used;
  for (const PlannedTensor& tensor : plan.tensors) {
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item && wanted.contains(index_of(*chunk.item)))
        used[index_of(*chunk.item)].push_back(whole(checkpoint.sizes(*chunk.item)));
      for (const Piece& piece : chunk.pieces) {
        if (wanted.contains(index_of(piece.chunk)))
          used[index_of(piece.chunk)].push_back(piece.source);
      }
    }
  }
  return used;
}

}  // namespace

Status prove_exchanged(const Checkpoint& checkpoint, const Plan& plan) {
  std::vector<const PlannedTensor*> takers;
  std::set<std::size_t> wanted, planned;
  for (const PlannedTensor& tensor : plan.tensors) {
    planned.insert(index_of(tensor.tensor));
    if (tensor.lost_elements != 0 || has_external_pieces(tensor) || is_pure_relabel(tensor))
      continue;
    auto used = used_chunks(tensor);
    bool takes = std::any_of(used.begin(), used.end(), [&](const auto& one) {
      return checkpoint.tensor_of(ChunkId{one.first}) != tensor.tensor;
    });
    if (!takes) continue;
    takers.push_back(&tensor);
    for (const auto& [chunk, one] : used) wanted.insert(chunk);
    for (ChunkId chunk : checkpoint.chunks(tensor.tensor)) wanted.insert(index_of(chunk));
  }
  if (takers.empty()) return {};
  auto used = boxes_used_of_chunks(checkpoint, plan, wanted);
  for (const PlannedTensor* taker : takers) {
    for (const auto& [chunk, one] : used_chunks(*taker)) {
      bool is_free = planned.contains(index_of(checkpoint.tensor_of(ChunkId{chunk})));
      if (!is_free || !are_disjoint(used[chunk]))
        return cannot_lower(checkpoint, taker->tensor, "the plan uses elements of another tensor");
    }
    for (ChunkId chunk : checkpoint.chunks(taker->tensor)) {
      if (volume(checkpoint.sizes(chunk)) != 0 &&
          !tiles_exactly(used[index_of(chunk)], checkpoint.sizes(chunk)))
        return cannot_lower(checkpoint, taker->tensor, "some elements would be dropped");
    }
  }
  return {};
}

std::int64_t count_dropped_padding(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  if (planned.lost_elements != 0 || !prove_only_trailing_rows_dropped(checkpoint, planned))
    return 0;
  return volume(checkpoint.shape(planned.tensor)).value_or(0) - volume(planned.shape).value_or(0);
}

}  // namespace shw
