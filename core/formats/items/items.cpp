#include "core/formats/items/items.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/formats/items/item_access.h"
#include "core/formats/items/tensor_box.h"
#include "core/formats/tensor_coverage.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// The elements of a chunk; the payload must have the recorded size.
Result<Bytes> read_chunk_with(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                              std::optional<Dtype> dtype) {
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, part_to_read(checkpoint, chunk)));
  if (!same(item.header.sizes, checkpoint.sizes(chunk)) || (dtype && *dtype != item.header.dtype))
    return tl::unexpected<Error>(recorded_mismatch_error(checkpoint, chunk, item.header));
  auto bytes = read_elements(item);
  if (!bytes)
    return tl::unexpected<Error>(
        naming(std::move(bytes).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
  return bytes;
}

// Number of elements in no box, computed per slab: a bitmap of 8 billion bits would be 1 GB.
std::int64_t count_uncovered_elements(std::span<const Box> boxes, const Extents& shape) {
  constexpr std::int64_t kCounted = 1 << 26;
  if (volume(shape).value_or(0) == 0) return 0;
  std::int64_t missing = 0;
  for (const Box& slab : split_into_row_boxes(shape, kCounted)) {
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
std::optional<std::int64_t> volume_if_disjoint(std::span<const Box> boxes) {
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
Box box_of_leading_elements(const Extents& shape, std::int64_t count) {
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

Result<std::uint64_t> tensor_size(const Checkpoint& checkpoint, TensorId tensor,
                                  std::uint64_t limit) {
  constexpr std::uint64_t kAlwaysFine = std::uint64_t{64} << 20;
  constexpr std::uint64_t kMaxGrowth = 64;
  constexpr std::uint64_t kZstdGrowth = 32768;  // a block of 128 KiB in four bytes
  ExtentsView shape = checkpoint.shape(tensor);
  Place place{{}, std::nullopt, std::string(checkpoint.fqn(tensor))};
  auto elements = volume(shape);
  std::uint64_t size = size_of(checkpoint.dtype(tensor));
  auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements), size) : std::nullopt;
  if (size == 0) return fail(ErrorKind::kUnsupported, "the tensor's dtype is not known", place);
  if (!bytes)
    return fail(ErrorKind::kDamaged, "the shape " + to_text(shape) + " is impossible", place);
  if (*bytes > limit)
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the tensor takes {} bytes; at most {} can be read at once", *bytes, limit),
        place);
  std::uint64_t stored = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    auto item = checkpoint.item(chunk);
    if (!item || item->length < 0) continue;
    std::uint64_t growth = checkpoint.transforms(chunk).empty() ? 1 : kZstdGrowth;
    std::uint64_t length =
        std::min(static_cast<std::uint64_t>(item->length), checkpoint.file(item->file).size);
    auto sum = checked_add(stored, checked_mul(length, growth).value_or(*bytes));
    stored = sum.value_or(*bytes);
  }
  if (*bytes > kAlwaysFine && *bytes / kMaxGrowth > stored)
    return fail(ErrorKind::kUnsupported,
                fmt::format("the tensor of shape {} needs {} bytes, but its chunks hold only {}",
                            to_text(shape), *bytes, stored),
                place);
  return *bytes;
}

Result<Bytes> read_chunk(const Checkpoint& checkpoint, ChunkId chunk) {
  ItemFiles files(checkpoint);
  return read_chunk_with(files, checkpoint, chunk, std::nullopt);
}

Result<TensorValues> read_tensor(const Checkpoint& checkpoint, TensorId tensor,
                                 std::uint64_t limit_bytes, Progress* progress) {
  SHW_TRY(std::uint64_t bytes, tensor_size(checkpoint, tensor, limit_bytes));
  TensorValues values{checkpoint.dtype(tensor), copy_of(checkpoint.shape(tensor)), Bytes(bytes), 0};
  const std::size_t size = size_of(values.dtype);
  const Extents strides = row_major_strides(values.shape);
  const Box all = whole(values.shape);
  Coverage coverage(static_cast<std::int64_t>(bytes / size));
  ItemFiles files(checkpoint);
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    Box box = box_of(checkpoint, chunk);
    if (!is_inside(box.offsets, box.sizes, values.shape))
      return fail(ErrorKind::kDamaged,
                  "the chunk at " + to_text(box.offsets) + " of sizes " + to_text(box.sizes) +
                      " is not inside the shape " + to_text(values.shape),
                  {{}, std::nullopt, std::string(checkpoint.fqn(tensor))});
    if (is_empty(box)) continue;
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(Bytes part, read_chunk_with(files, checkpoint, chunk, values.dtype));
    if (progress != nullptr) progress->add(part.size());
    std::int64_t first = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) first += box.offsets[d] * strides[d];
    Extents dense = row_major_strides(box.sizes);
    copy_strided({part, dense, 0}, {values.bytes, strides, first}, box.sizes, size);
    coverage.add(box, strides);
  }
  values.uncovered = coverage.missing();
  return values;
}

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
  const Box first = box_of_leading_elements(shape, static_cast<std::int64_t>(count));
  values.bytes.resize(static_cast<std::size_t>(volume(first.sizes).value_or(0)) * size);
  ItemCursor items(checkpoint, /*decoded_bytes=*/0);
  std::vector<Box> boxes;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    const Box box = box_of(checkpoint, chunk);
    // read_tensor reports the error.
    if (!is_inside(box.offsets, box.sizes, shape)) return read_tensor(checkpoint, tensor);
    if (is_empty(box)) continue;
    boxes.push_back(box);
    auto common = intersect(box, first);
    if (!common || is_empty(*common)) continue;
    SHW_TRY(const ItemHeader header, items.header(chunk));
    if (header.dtype != values.dtype)
      return tl::unexpected<Error>(recorded_mismatch_error(checkpoint, chunk, header));
  }
  SHW_TRY([[maybe_unused]] const auto read, read_tensor_box(items, tensor, first, values.bytes));
  values.bytes.resize(static_cast<std::size_t>(count) * size);
  const auto covered = volume_if_disjoint(boxes);
  values.uncovered =
      covered ? volume(shape).value_or(0) - *covered : count_uncovered_elements(boxes, shape);
  return values;
}

}  // namespace shw
