#include "core/formats/items/chunk_storage.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_access.h"
#include "core/tensor/strided_copy.h"

namespace shw {

std::int64_t ChunkStorage::begin_of(const Box& box) const {
  std::int64_t begin = first;
  for (std::size_t d = 0; d < strides.size(); ++d) begin += box.offsets[d] * strides[d];
  return begin;
}

bool ChunkStorage::is_one_byte_run(const Box& box, std::size_t element) const {
  auto next = static_cast<std::int64_t>(element);
  for (std::size_t d = box.sizes.size(); d-- > 0;) {
    if (box.sizes[d] == 1) continue;
    if (strides[d] != next) return false;
    next *= box.sizes[d];
  }
  return true;
}

// open_item() has checked the view.
ChunkStorage storage_of_item(const ItemHeader& header, const ItemPlace& place) {
  ChunkStorage storage;
  storage.file = place.file;
  storage.is_stored =
      !header.compressed && !header.big_endian && !header.conjugate && !header.negative;
  const std::uint64_t element = size_of(header.dtype);
  if (!storage.is_stored) {
    const auto elements = static_cast<std::uint64_t>(volume(header.sizes).value_or(0));
    storage.offset = static_cast<std::uint64_t>(place.offset);
    storage.length = checked_mul(elements, element).value_or(UINT64_MAX);
    storage.strides = byte_strides(header.sizes, element);
    return storage;
  }
  storage.offset = header.payload_offset;
  storage.length = header.payload_length;
  storage.strides = steps_of(header);
  storage.first = header.storage_offset * static_cast<std::int64_t>(element);
  storage.crc = header.payload_crc;
  return storage;
}

Status check_recorded(const Checkpoint& checkpoint, ChunkId chunk, const ItemHeader& header) {
  const std::size_t element = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
  if (same(header.sizes, checkpoint.sizes(chunk)) && size_of(header.dtype) == element &&
      element != 0 && volume(checkpoint.sizes(chunk)))
    return {};
  return tl::unexpected<Error>(recorded_mismatch_error(checkpoint, chunk, header));
}

Status for_each_storage(const Checkpoint& checkpoint, std::span<const ChunkId> chunks,
                        const std::function<void(std::size_t, const ChunkStorage&)>& visit,
                        Progress* progress, AfterError after) {
  const std::vector<std::uint32_t> order = order_on_disk(checkpoint, chunks);
  std::vector<ChunkId> on_disk;
  on_disk.reserve(order.size());
  for (std::uint32_t i : order) on_disk.push_back(chunks[i]);
  std::mutex guard;
  std::optional<std::pair<std::uint32_t, Error>> first;
  std::atomic<std::uint32_t> failed{
      UINT32_MAX};  // lowest failed index, if later items are irrelevant
  HeaderVisitor headers;
  headers.is_needed = [&](std::size_t at) {
    return order[at] <= failed.load(std::memory_order_relaxed);
  };
  headers.take = [&](std::size_t at, Result<ItemHeader> header) {
    const std::uint32_t i = order[at];
    const ChunkId chunk = chunks[i];
    if (header) {
      if (Status recorded = check_recorded(checkpoint, chunk, *header); !recorded)
        header = tl::unexpected<Error>(std::move(recorded).error());
    }
    if (header) return visit(i, storage_of_item(*header, *checkpoint.item(chunk)));
    std::lock_guard lock(guard);
    if (first && i > first->first) return;
    first.emplace(i, std::move(header).error());
    if (after == AfterError::kStop) failed = i;
  };
  SHW_CHECK(for_each_item_header(checkpoint, on_disk, headers, progress));
  if (first) return tl::unexpected<Error>(std::move(first->second));
  return {};
}

}  // namespace shw
