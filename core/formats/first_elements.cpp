#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/formats/box_reader.h"
#include "core/formats/item_access.h"
#include "core/formats/items.h"
#include "core/formats/tensor_coverage.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Number of elements in no box, computed per slab: a bitmap of 8 billion bits would be 1 GB.
std::int64_t uncovered_by(std::span<const Box> boxes, const Extents& shape) {
  constexpr std::int64_t kCounted = 1 << 26;
  if (volume(shape).value_or(0) == 0) return 0;
  std::int64_t missing = 0;
  for (const Box& slab : row_slabs(shape, kCounted)) {
    Coverage coverage(volume(slab.sizes).value_or(0));
    for (const Box& box : boxes) {
      auto common = intersect(box, slab);
      if (!common || is_empty(*common)) continue;
      for (std::size_t d = 0; d < shape.size(); ++d) common->offsets[d] -= slab.offsets[d];
      coverage.add(*common, row_major_strides(slab.sizes));
    }
    missing += coverage.missing();
  }
  return missing;
}

// Number of elements in disjoint boxes, without a bitmap, which takes seconds for 1.5 billion
// elements. nullopt if boxes overlap or are too many for pairwise tests.
std::optional<std::int64_t> covered_by_disjoint(std::span<const Box> boxes) {
  constexpr std::size_t kMostBoxes = 2048;
  if (boxes.size() > kMostBoxes) return std::nullopt;
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      auto common = intersect(boxes[i], boxes[k]);
      if (common && !is_empty(*common)) return std::nullopt;
    }
    covered += volume(boxes[i].sizes).value_or(0);
  }
  return covered;
}

// The least box of leading indices that contains the first `count` elements, at most about twice as
// many.
Box first_box(const Extents& shape, std::int64_t count) {
  Box box = whole(shape);
  std::int64_t inner = volume(shape).value_or(0);
  for (std::int64_t& size : box.sizes) {
    inner /= size;  // elements per index of this dim
    if (inner <= count) {
      size = std::min(size, (count + inner - 1) / inner);
      break;
    }
    size = 1;
  }
  return box;
}

}  // namespace

Result<TensorValues> read_first_elements(const Checkpoint& checkpoint, TensorId tensor,
                                         std::uint64_t count) {
  // Tensors up to this size are read completely.
  constexpr std::uint64_t kFewBytes = std::uint64_t{64} << 20;
  SHW_TRY(const std::uint64_t bytes, tensor_size(checkpoint, tensor, UINT64_MAX));
  const std::size_t size = size_of(checkpoint.dtype(tensor));
  if (count == 0 || count >= bytes / size || count >= kFewBytes / size)
    return read_tensor(checkpoint, tensor);
  TensorValues values{checkpoint.dtype(tensor), copy_of(checkpoint.shape(tensor)), {}, 0};
  const Extents& shape = values.shape;
  const Box first = first_box(shape, static_cast<std::int64_t>(count));
  const Extents strides = row_major_strides(first.sizes);
  values.bytes.resize(static_cast<std::size_t>(volume(first.sizes).value_or(0)) * size);
  BoxReader reader(checkpoint, /*decoded_bytes=*/0);
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const Box box = box_of(checkpoint, chunk);
    // read_tensor reports the error.
    if (!lies_inside(box.offsets, box.sizes, shape)) return read_tensor(checkpoint, tensor);
    if (is_empty(box)) continue;
    boxes.push_back(box);
    auto common = intersect(box, first);
    if (!common || is_empty(*common)) continue;
    Box local = *common;
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      local.offsets[d] -= box.offsets[d];
      at += (common->offsets[d] - first.offsets[d]) * strides[d];
    }
    SHW_TRY(const ItemHeader header, reader.header(chunk));
    if (header.dtype != values.dtype)
      return tl::unexpected<Error>(not_as_recorded(checkpoint, chunk, header));
    SHW_TRY(Bytes part, reader.read(chunk, local));
    copy_strided({part, row_major_strides(local.sizes), 0}, {values.bytes, strides, at},
                 local.sizes, size);
  }
  values.bytes.resize(static_cast<std::size_t>(count) * size);
  const auto covered = covered_by_disjoint(boxes);
  values.uncovered = covered ? volume(shape).value_or(0) - *covered : uncovered_by(boxes, shape);
  return values;
}

}  // namespace shw
