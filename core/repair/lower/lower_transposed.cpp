// Two swapped dims. Every chunk keeps its elements and gets the transposed box; the elements are
// reordered when the new item is written. This is a bijection: each old element has exactly one new
// place.
#include <array>

#include "core/repair/lower/lower.h"

namespace shw {
namespace {

// Elements of packed dtypes share bytes, so moving bytes cannot reorder them.
bool is_packed(Dtype dtype) {
  constexpr std::array<Dtype, 6> kPacked{Dtype::kFloat4E2m1fnX2, Dtype::kBits1x8,
                                         Dtype::kBits2x4,        Dtype::kBits4x2,
                                         Dtype::kQuint4x2,       Dtype::kQuint2x4};
  for (Dtype packed : kPacked) {
    if (dtype == packed) return true;
  }
  return false;
}

}  // namespace

Result<PlannedTensor> lower_transposed(const Checkpoint& checkpoint, const Transposed& given) {
  auto refuse = [&](const std::string& why) { return cannot_lower(checkpoint, given.tensor, why); };
  Extents shape = copy_of(checkpoint.shape(given.tensor));
  if (given.first >= shape.size() || given.second >= shape.size() || given.first == given.second)
    return refuse("the dimensions in the plan do not exist");
  Dtype dtype = checkpoint.dtype(given.tensor);
  if (is_packed(dtype) || size_of(dtype) == 0) {
    return refuse("elements of " + std::string(name(dtype)) +
                  " are packed several per byte, and transposing bytes would corrupt them: unpack, "
                  "transpose and pack again in the code that makes the checkpoint");
  }
  auto exchange = [&](Extents& extents) { std::swap(extents[given.first], extents[given.second]); };
  PlannedTensor planned;
  planned.tensor = given.tensor;
  planned.shape = shape;
  exchange(planned.shape);
  if (planned.shape != given.expected)
    return refuse("swapping the dimensions does not give the expected shape");
  Extents permutation;
  for (std::size_t d = 0; d < shape.size(); ++d)
    permutation.push_back(static_cast<std::int64_t>(d));
  exchange(permutation);
  for (ChunkId chunk : checkpoint.chunks(given.tensor)) {
    Box box = box_of(checkpoint, chunk);
    if (!is_inside(box.offsets, box.sizes, shape))
      return refuse("a chunk is outside the saved shape");
    // An empty shard covers nothing at any offset.
    if (is_empty(box)) continue;
    PlannedChunk made;
    Piece piece{chunk, whole(box.sizes), Extents(shape.size(), 0), permutation};
    exchange(box.offsets);
    exchange(box.sizes);
    made.box = std::move(box);
    made.pieces.push_back(std::move(piece));
    made.writer = checkpoint.writer(chunk).value_or(0);
    planned.chunks.push_back(std::move(made));
  }
  return planned;
}

}  // namespace shw
