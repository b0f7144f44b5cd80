// Reads item headers, many of them in parallel.
#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "core/base/cancellable_range.h"
#include "core/base/parallel.h"
#include "core/formats/items/item_access.h"
#include "core/formats/items/items.h"

namespace shw {
namespace {

// All chunks in file order.
std::vector<ChunkId> chunks_by_file_offset(const Checkpoint& checkpoint, const Progress* progress) {
  std::vector<ChunkId> order;
  order.reserve(checkpoint.chunk_count());
  for (ChunkId chunk : checkpoint.chunks()) order.push_back(chunk);
  auto before = [&](ChunkId a, ChunkId b) {
    auto left = checkpoint.item(a).value_or(ItemPlace{});
    auto right = checkpoint.item(b).value_or(ItemPlace{});
    return std::tuple(left.file, left.offset, a) < std::tuple(right.file, right.offset, b);
  };
  cancellable_stable_sort(order.begin(), order.end(), before, progress);
  return order;
}

// Start indices of tasks of one file each, plus the end. A task has many headers, so that the cost
// of opening a file is negligible. Compressed items are decompressed for their header, so few of
// them form a task.
std::vector<std::size_t> header_tasks(const Checkpoint& checkpoint,
                                      std::span<const ChunkId> on_disk) {
  constexpr std::size_t kAtOnce = 256;
  constexpr std::int64_t kDecompressed = 4 << 20;
  std::vector<std::size_t> begins{0};
  std::int64_t compressed = 0;
  FileId file = FileId::kNone;
  for (std::size_t i = 0; i < on_disk.size(); ++i) {
    const ItemPlace place = checkpoint.item(on_disk[i]).value_or(ItemPlace{});
    if (i != 0 &&
        (i - begins.back() == kAtOnce || compressed >= kDecompressed || place.file != file)) {
      begins.push_back(i);
      compressed = 0;
    }
    file = place.file;
    if (!checkpoint.transforms(on_disk[i]).empty())
      compressed += std::clamp<std::int64_t>(place.length, 0, kDecompressed);
  }
  begins.push_back(on_disk.size());
  return begins;
}

}  // namespace

Status for_each_item_header(const Checkpoint& checkpoint, std::span<const ChunkId> on_disk,
                            const HeaderVisitor& visitor, Progress* progress) {
  const std::vector<std::size_t> begins = header_tasks(checkpoint, on_disk);
  const Decompression how{nullptr, progress};
  return parallel_for(begins.size() - 1, [&](std::size_t task) -> Status {
    ItemFiles files(checkpoint);
    for (std::size_t i = begins[task]; i < begins[task + 1]; ++i) {
      if (is_cancelled(progress)) return cancelled_error();
      if (visitor.is_needed != nullptr && !visitor.is_needed(i)) continue;
      // Elements without a header are left unread: each would be a request over the network.
      const auto place = checkpoint.item(on_disk[i]);
      if (place && !checkpoint.codec(on_disk[i]).is_without_header)
        files.read_with_following_items(*place);
      auto item = open_item(files, checkpoint, on_disk[i], ItemPart::kHeader, &how);
      visitor.take(i, item ? Result<ItemHeader>(std::move(item->header))
                           : tl::unexpected<Error>(std::move(item).error()));
    }
    return {};
  });
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
    return fail(ErrorKind::kUnsupported, "holds items without headers",
                {range.source->name(), range.offset});
  SHW_TRY(OpenItem item, reader->open(checkpoint, chunk, std::move(range), ItemPart::kHeader));
  return std::move(item.header);
}

Result<ItemHeaders> read_item_headers(const Checkpoint& checkpoint, Progress* progress) {
  ItemHeadersBuilder headers(checkpoint.chunk_count());
  const std::vector<ChunkId> on_disk = chunks_by_file_offset(checkpoint, progress);
  if (is_cancelled(progress)) return cancelled_error();
  if (progress != nullptr) progress->begin(Phase::kReadingHeaders, on_disk.size(), false);
  HeaderVisitor visitor;
  visitor.take = [&](std::size_t i, Result<ItemHeader> header) {
    headers.set(index_of(on_disk[i]), std::move(header));
    if (progress != nullptr) progress->add(1);
  };
  SHW_CHECK(for_each_item_header(checkpoint, on_disk, visitor, progress));
  if (is_cancelled(progress)) return cancelled_error();
  return headers.take();
}

}  // namespace shw
