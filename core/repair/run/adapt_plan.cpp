// A plan in the form that the format can hold.
#include "core/repair/lower/lower.h"
#include "core/repair/run/carry_out.h"

namespace shw {
namespace {

PlannedChunk joined(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  PlannedChunk one;
  one.box = whole(tensor.shape);
  one.writer = tensor.chunks.empty() ? 0 : tensor.chunks.front().writer;
  auto at_of = [](const PlannedChunk& chunk, Extents at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += chunk.box.offsets[d];
    return at;
  };
  for (const PlannedChunk& chunk : tensor.chunks) {
    if (chunk.item)
      one.pieces.push_back({*chunk.item, whole(checkpoint.sizes(*chunk.item)), chunk.box.offsets});
    for (const Piece& piece : chunk.pieces) {
      one.pieces.push_back(piece);
      one.pieces.back().at = at_of(chunk, piece.at);
    }
    for (const ExternalPiece& side : chunk.external) {
      one.external.push_back(side);
      one.external.back().at = at_of(chunk, side.at);
    }
  }
  return one;
}

// A file knows its bytes by the tensor's name: those of another tensor, or of one with a new name,
// have to be copied.
PlannedChunks without_others_items(const Checkpoint& checkpoint, const PlannedTensor& tensor) {
  PlannedChunks chunks;
  chunks.reserve(tensor.chunks.size());
  for (PlannedChunk chunk : tensor.chunks) {
    const bool is_known = tensor.fqn.empty() || tensor.fqn == checkpoint.fqn(tensor.tensor);
    if (chunk.item && (!is_known || checkpoint.tensor_of(*chunk.item) != tensor.tensor)) {
      chunk.pieces.push_back(
          {*chunk.item, whole(chunk.box.sizes), Extents(chunk.box.sizes.size(), 0)});
      chunk.item.reset();
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace

Plan adapt_plan_to_format(const Checkpoint& checkpoint, Plan plan) {
  if (checkpoint.format().rewrite != Rewrite::kFiles) return plan;
  bool plain = checkpoint.format().traits.one_piece;
  for (PlannedTensor& tensor : plan.tensors) {
    tensor.chunks = without_others_items(checkpoint, tensor);
    bool one = tensor.chunks.size() == 1 && tensor.chunks.front().box == whole(tensor.shape);
    if (!plain || one) continue;
    PlannedChunk chunk = joined(checkpoint, tensor);
    tensor.chunks.clear();
    tensor.chunks.push_back(std::move(chunk));
  }
  return plan;
}

const Plan& adapt_plan_to_format(const Checkpoint& checkpoint, const Plan& plan,
                                 std::optional<Plan>& changed) {
  if (checkpoint.format().rewrite != Rewrite::kFiles) return plan;
  return changed.emplace(adapt_plan_to_format(checkpoint, plan));
}

}  // namespace shw
