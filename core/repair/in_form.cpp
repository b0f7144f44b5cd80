// A plan in the form that the format can hold.
#include "core/repair/carry_out.h"
#include "core/repair/lower.h"

namespace shw {
namespace {

PlannedChunk joined(const Checkpoint& checkpoint, PlannedTensor& tensor) {
  PlannedChunk one;
  one.box = whole(tensor.shape);
  one.writer = tensor.chunks.empty() ? 0 : tensor.chunks.front().writer;
  auto at_of = [](const PlannedChunk& chunk, Extents at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += chunk.box.offsets[d];
    return at;
  };
  for (PlannedChunk& chunk : tensor.chunks) {
    if (chunk.item)
      one.pieces.push_back({*chunk.item, whole(checkpoint.sizes(*chunk.item)), chunk.box.offsets});
    for (Piece& piece : chunk.pieces) {
      piece.at = at_of(chunk, std::move(piece.at));
      one.pieces.push_back(std::move(piece));
    }
    for (SidePiece& side : chunk.side) {
      one.side.push_back(std::move(side));
      one.side.back().at = at_of(chunk, one.side.back().at);
    }
  }
  return one;
}

}  // namespace

Plan in_form_of(const Checkpoint& checkpoint, Plan plan) {
  if (checkpoint.format().rewrite != Rewrite::kFiles) return plan;
  bool plain = checkpoint.format().traits.one_piece;
  for (PlannedTensor& tensor : plan.tensors) {
    for (PlannedChunk& chunk : tensor.chunks) {
      // A file knows its bytes by the tensor's name: those of another tensor have to be copied.
      if (!chunk.item || checkpoint.tensor_of(*chunk.item) == tensor.tensor) continue;
      chunk.pieces.push_back(
          {*chunk.item, whole(chunk.box.sizes), Extents(chunk.box.sizes.size(), 0)});
      chunk.item.reset();
    }
    bool one = tensor.chunks.size() == 1 && tensor.chunks.front().box == whole(tensor.shape);
    if (!plain || one) continue;
    PlannedChunk chunk = joined(checkpoint, tensor);
    tensor.chunks.clear();
    tensor.chunks.push_back(std::move(chunk));
  }
  return plan;
}

const Plan& in_form_of(const Checkpoint& checkpoint, const Plan& plan,
                       std::optional<Plan>& changed) {
  if (checkpoint.format().rewrite != Rewrite::kFiles) return plan;
  return changed.emplace(in_form_of(checkpoint, plan));
}

}  // namespace shw
