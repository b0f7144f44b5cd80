#include "core/compare/damaged_items.h"

#include <fmt/core.h>

#include <memory>
#include <mutex>

#include "core/base/parallel.h"
#include "core/base/parallel_batches.h"
#include "core/formats/items/disk_order.h"
#include "core/formats/items/item_check.h"

namespace shw {
namespace {

std::string damage_text(const Checkpoint& checkpoint, ChunkId chunk, const DataCheck& check) {
  const auto place = checkpoint.item(chunk);
  return fmt::format("{}{} is damaged: its checksum is {:08x}, {:08x} is recorded",
                     place ? checkpoint.file(place->file).path + ": " : std::string(),
                     check.record.empty() ? "an item" : check.record, check.actual, check.expected);
}

}  // namespace

Result<std::map<TensorId, std::string>> damaged_items(const Checkpoint& checkpoint,
                                                      const std::vector<TensorId>& tensors,
                                                      Progress* progress) {
  std::vector<ChunkId> chunks;
  for (TensorId tensor : tensors) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) chunks.push_back(chunk);
  }
  const std::vector<std::uint32_t> order = order_on_disk(checkpoint, chunks);
  std::vector<std::uint64_t> costs;
  costs.reserve(order.size());
  for (std::uint32_t i : order) {
    const auto place = checkpoint.item(chunks[i]);
    costs.push_back(place && place->length > 0 ? static_cast<std::uint64_t>(place->length) : 0);
  }
  Pool<ItemCursor> items([&] { return std::make_unique<ItemCursor>(checkpoint, 0); });
  std::map<TensorId, std::string> damaged;
  std::mutex guard;
  SHW_CHECK(parallel_for_batched(costs, [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    const ChunkId chunk = chunks[order[i]];
    auto check = check_item_data(*items.take(), chunk, nullptr);
    // Unreadable items were reported when values were compared.
    if (!check || check->crc != DataCheck::Crc::kDiffers) return {};
    std::lock_guard lock(guard);
    damaged.try_emplace(checkpoint.tensor_of(chunk), damage_text(checkpoint, chunk, *check));
    return {};
  }));
  return damaged;
}

}  // namespace shw
