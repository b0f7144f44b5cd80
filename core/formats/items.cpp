#include "core/formats/items.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/formats/item_access.h"
#include "core/formats/tensor_coverage.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Headers per task: makes the cost of opening a file negligible.
constexpr std::size_t kHeadersPerTask = 256;

// Chunks in file order, so that a task reads one file sequentially.
std::vector<std::uint32_t> by_place(const Checkpoint& checkpoint, const Progress* progress) {
  std::vector<std::uint32_t> order(checkpoint.chunk_count());
  std::iota(order.begin(), order.end(), 0u);
  auto before = [&](std::uint32_t a, std::uint32_t b) {
    auto left = checkpoint.item(ChunkId{a}).value_or(ItemPlace{});
    auto right = checkpoint.item(ChunkId{b}).value_or(ItemPlace{});
    return std::tuple(left.file, left.offset, a) < std::tuple(right.file, right.offset, b);
  };
  stable_sort_until_cancelled(order.begin(), order.end(), before, progress);
  return order;
}

struct Task {
  std::size_t first, last;
};

std::vector<Task> tasks_of(const Checkpoint& checkpoint, const std::vector<std::uint32_t>& order) {
  std::vector<Task> tasks;
  auto file = [&](std::size_t i) {
    return checkpoint.item(ChunkId{order[i]}).value_or(ItemPlace{}).file;
  };
  for (std::size_t first = 0, i = 1; i <= order.size(); ++i) {
    if (i < order.size() && i - first < kHeadersPerTask && file(i) == file(first)) continue;
    tasks.push_back({first, i});
    first = i;
  }
  return tasks;
}

// The elements of a chunk; the payload must have the recorded size.
Result<Bytes> read_chunk_with(ItemFiles& files, const Checkpoint& checkpoint, ChunkId chunk,
                              std::optional<Dtype> dtype) {
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, part_to_read(checkpoint, chunk)));
  if (!same(item.header.sizes, checkpoint.sizes(chunk)) || (dtype && *dtype != item.header.dtype))
    return tl::unexpected<Error>(not_as_recorded(checkpoint, chunk, item.header));
  auto bytes = read_elements(item);
  if (!bytes)
    return tl::unexpected<Error>(
        naming(std::move(bytes).error(), checkpoint.fqn(checkpoint.tensor_of(chunk))));
  return bytes;
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
  if (!bytes) return fail(ErrorKind::kDamaged, "the shape " + to_text(shape) + " cannot be", place);
  if (*bytes > limit)
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the tensor takes {} bytes; at most {} are read at once", *bytes, limit),
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
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the tensor of shape {} would take {} bytes, but its chunks hold only {}",
                    to_text(shape), *bytes, stored),
        place);
  return *bytes;
}

Result<ItemHeader> read_item_header(const Checkpoint& checkpoint, ChunkId chunk) {
  ItemFiles files(checkpoint);
  SHW_TRY(OpenItem item, open_item(files, checkpoint, chunk, ItemPart::kHeader));
  return std::move(item.header);
}

Result<ItemHeader> read_orphan_header(const Checkpoint& checkpoint, ChunkId chunk,
                                      ItemPlace place) {
  ItemFiles files(checkpoint);
  SHW_TRY(ItemRange range, find_item(files, place));
  const ItemReader* reader = checkpoint.codec(chunk).reader;
  if (reader == nullptr)
    return fail(ErrorKind::kUnsupported, "holds items that say nothing of themselves",
                {range.source->name(), range.offset});
  SHW_TRY(OpenItem item, reader->open(checkpoint, chunk, std::move(range), ItemPart::kHeader));
  return std::move(item.header);
}

Result<ItemHeaders> read_item_headers(const Checkpoint& checkpoint, Progress* progress) {
  ItemHeadersBuilder headers(checkpoint.chunk_count());
  std::vector<std::uint32_t> order = by_place(checkpoint, progress);
  if (is_cancelled(progress)) return cancelled_error();
  std::vector<Task> tasks = tasks_of(checkpoint, order);
  if (progress != nullptr) progress->begin(Phase::kReadingHeaders, order.size(), false);
  const Decompression how{nullptr, progress};
  parallel_for_ranges(tasks.size(), 1, [&](std::size_t t, std::size_t) {
    ItemFiles files(checkpoint);
    for (std::size_t i = tasks[t].first; i < tasks[t].last; ++i) {
      if (is_cancelled(progress)) return;
      ChunkId chunk{order[i]};
      // Elements without a header are left unread: each would be a request over the network.
      auto place = checkpoint.item(chunk);
      if (place && !checkpoint.codec(chunk).lies_bare) files.read_around(*place);
      auto item = open_item(files, checkpoint, chunk, ItemPart::kHeader, &how);
      headers.set(order[i], item ? Result<ItemHeader>(std::move(item->header))
                                 : tl::unexpected<Error>(std::move(item).error()));
      if (progress != nullptr) progress->add(1);
    }
  });
  if (is_cancelled(progress)) return cancelled_error();
  return headers.take();
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
    if (!lies_inside(box.offsets, box.sizes, values.shape))
      return fail(ErrorKind::kDamaged,
                  "the chunk at " + to_text(box.offsets) + " of sizes " + to_text(box.sizes) +
                      " does not lie inside the shape " + to_text(values.shape),
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

}  // namespace shw
