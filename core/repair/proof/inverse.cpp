#include "core/repair/proof/inverse.h"

#include <algorithm>
#include <map>

#include "core/base/parallel.h"
#include "core/repair/lower/lower.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

constexpr std::size_t kMostPieces = 100'000;
// Pieces times chunks that are looked through for them.
constexpr std::uint64_t kMostLooks = 10'000'000;

// Where the part lies in the new tensor.
Box box_in_new(const InverseChunk::Part& part) {
  Box box{part.from, part.sizes};
  for (std::size_t d = 0; d < part.order.size(); ++d)
    box.sizes[static_cast<std::size_t>(part.order[d])] = part.sizes[d];
  return box;
}

bool is_box_of(const InverseChunk::Part& part, ExtentsView old_sizes, ExtentsView shape) {
  if (!lies_inside(part.at, part.sizes, old_sizes)) return false;
  if (!is_order_of_dims(part.order, part.sizes.size())) return false;
  Box box = box_in_new(part);
  return lies_inside(box.offsets, box.sizes, shape);
}

bool covers(const InverseChunk& chunk) {
  std::vector<Box> boxes;
  for (const InverseChunk::Part& part : chunk.parts) boxes.push_back({part.at, part.sizes});
  return tiles_exactly(boxes, chunk.sizes);
}

// The old chunk, to be put together from the new tensor's chunks.
PlannedChunk old_chunk(const Checkpoint& result, TensorId tensor, const InverseChunk& inverse) {
  PlannedChunk made;
  made.box = whole(inverse.sizes);
  for (const InverseChunk::Part& part : inverse.parts) {
    Box wanted = box_in_new(part);
    for (ChunkId chunk : result.chunks(tensor)) {
      Box saved = box_of(result, chunk);
      auto common = wanted.sizes.empty() ? std::optional<Box>(wanted) : intersect(saved, wanted);
      if (!common) continue;
      Piece piece{chunk, *common, part.at, part.order};
      for (std::size_t d = 0; d < part.at.size(); ++d) {
        std::size_t now = part.order.empty() ? d : static_cast<std::size_t>(part.order[d]);
        piece.source.offsets[d] -= saved.offsets[d];
        piece.at[d] += common->offsets[now] - wanted.offsets[now];
      }
      made.pieces.push_back(std::move(piece));
    }
  }
  return made;
}

}  // namespace

Result<std::string> contradiction_of_inverse(const std::vector<InverseChunk>& inverse,
                                             TensorId tensor, const Checkpoint& checkpoint,
                                             Progress* progress) {
  ExtentsView shape = checkpoint.shape(tensor);
  std::uint64_t parts = 0;
  for (const InverseChunk& chunk : inverse) {
    parts += chunk.parts.size();
    bool plain = chunk.sizes.size() == shape.size() && volume(chunk.sizes) &&
                 volume(chunk.sizes) <= volume(shape) &&
                 std::all_of(chunk.parts.begin(), chunk.parts.end(),
                             [&](const auto& part) { return is_box_of(part, chunk.sizes, shape); });
    if (!plain || parts > kMostPieces || !covers(chunk)) return "the way back is none";
  }
  if (parts * checkpoint.chunks(tensor).size() > 10 * kMostLooks) return "the way back is too long";
  PlannedTensor planned;
  planned.tensor = tensor;
  std::vector<std::string> hashes(inverse.size());
  SHW_CHECK(parallel_for(inverse.size(), [&](std::size_t i) -> Status {
    BoxReader result(checkpoint);
    PlannedChunk old = old_chunk(checkpoint, tensor, inverse[i]);
    SHW_TRY(hashes[i], hash_payload(planned, old, result, progress));
    return {};
  }));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    if (hashes[i] != inverse[i].hash)
      return "mapped back, a tile of size " + to_text(inverse[i].sizes) + " is not the source's";
  }
  return std::string();
}

}  // namespace shw
