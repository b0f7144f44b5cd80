#include "core/formats/tensor_split.h"

#include "core/base/checked.h"

namespace shw {

std::optional<SplitPart> split_part_of_rank(TensorSplit cut, const Extents& local,
                                            std::uint32_t rank, std::uint32_t ranks) {
  SplitPart part{local, {whole(local)}};
  if (cut == TensorSplit::kReplicated || ranks == 1) return part;
  const std::size_t axis = cut == TensorSplit::kColumns ? 1 : 0;
  if (local.size() <= axis) return std::nullopt;
  const auto all = checked_mul(local[axis], std::int64_t{ranks});
  if (!all) return std::nullopt;
  part.shape[axis] = *all;
  Box& box = part.boxes.front();
  box.offsets[axis] = std::int64_t{rank} * local[axis];
  if (cut != TensorSplit::kGatedRows) return part;
  if (local[axis] % 2 != 0) return std::nullopt;
  box.sizes[axis] = local[axis] / 2;
  box.offsets[axis] = std::int64_t{rank} * box.sizes[axis];
  part.boxes.push_back(box);
  part.boxes.back().offsets[axis] += *all / 2;
  return part;
}

}  // namespace shw
