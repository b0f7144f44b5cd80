#include "core/formats/items/disk_order.h"

#include <algorithm>
#include <tuple>

namespace shw {

std::vector<std::uint32_t> order_on_disk(const Checkpoint& checkpoint,
                                         std::span<const ChunkId> chunks) {
  std::vector<std::tuple<FileId, std::int64_t, std::uint32_t>> places;
  places.reserve(chunks.size());
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const ItemPlace item = checkpoint.item(chunks[i]).value_or(ItemPlace{});
    places.emplace_back(item.file, item.offset, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::uint32_t> order;
  order.reserve(places.size());
  for (const auto& place : places) order.push_back(std::get<std::uint32_t>(place));
  return order;
}

std::vector<ChunkId> chunks_on_disk(const Checkpoint& checkpoint) {
  std::vector<ChunkId> chunks;
  chunks.reserve(checkpoint.chunk_count());
  for (ChunkId chunk : checkpoint.chunks()) chunks.push_back(chunk);
  std::vector<ChunkId> as_they_lie;
  as_they_lie.reserve(chunks.size());
  for (std::uint32_t i : order_on_disk(checkpoint, chunks)) as_they_lie.push_back(chunks[i]);
  return as_they_lie;
}

}  // namespace shw
