#include "core/repair/plan/plan_types.h"

namespace shw {

std::string_view name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kRelabel:
      return "relabel";
    case OperationKind::kRetile:
      return "retile";
    case OperationKind::kPermuteBlocks:
      return "permute-blocks";
    case OperationKind::kTranspose:
      return "transpose";
    case OperationKind::kRename:
      return "rename";
    case OperationKind::kMask:
      return "mask";
    case OperationKind::kFill:
      return "fill";
    case OperationKind::kRewriteMetadata:
      return "rewrite-metadata";
  }
  return "unknown";
}

std::string_view name(Fill fill) {
  switch (fill) {
    case Fill::kZero:
      return "zero";
    case Fill::kCast:
      return "cast";
    case Fill::kReference:
      break;
  }
  return "from";
}

Extents sizes_in_new(const Piece& piece) {
  if (piece.permutation.empty()) return piece.source.sizes;
  Extents sizes;
  for (std::int64_t dim : piece.permutation)
    sizes.push_back(piece.source.sizes[static_cast<std::size_t>(dim)]);
  return sizes;
}

std::string_view fqn_after(const Checkpoint& checkpoint, const PlannedTensor& planned) {
  return planned.fqn.empty() ? checkpoint.fqn(planned.tensor) : std::string_view(planned.fqn);
}

}  // namespace shw
