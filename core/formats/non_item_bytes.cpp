#include "core/formats/non_item_bytes.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

NonItemBytes::NonItemBytes(const Checkpoint& checkpoint) {
  auto add = [&](const std::optional<ItemPlace>& item) {
    if (!item || item->offset < 0 || item->length <= 0) return;
    items_[checkpoint.file(item->file).path].push_back(
        {static_cast<std::uint64_t>(item->offset), static_cast<std::uint64_t>(item->length)});
  };
  for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i) add(checkpoint.item(ChunkId{i}));
  for (const NonTensorEntry& row : checkpoint.objects()) add(row.item);
  for (auto& [path, items] : items_) {
    std::sort(items.begin(), items.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  }
}

std::vector<ByteRange> NonItemBytes::of(const std::string& path, std::uint64_t size) const {
  std::vector<ByteRange> rest;
  std::uint64_t at = 0;
  auto found = items_.find(path);
  for (const ByteRange& item : found == items_.end() ? std::vector<ByteRange>() : found->second) {
    if (item.offset > at) rest.push_back({at, std::min(item.offset, size) - std::min(at, size)});
    at = std::max(at, checked_add(item.offset, item.length).value_or(UINT64_MAX));
  }
  if (at < size) rest.push_back({at, size - at});
  std::erase_if(rest, [](const ByteRange& range) { return range.length == 0; });
  return rest;
}

}  // namespace shw
