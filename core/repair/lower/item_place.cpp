#include "core/repair/lower/item_place.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

std::optional<ItemPlace> external_item_place(const Checkpoint& checkpoint,
                                             const PlannedChunk& chunk) {
  if (!chunk.item || chunk.external.size() != 1) return std::nullopt;
  const ExternalPiece& there = chunk.external.front();
  auto files = checkpoint.files();
  auto found = std::find_if(files.begin(), files.end(),
                            [&](const FileRow& file) { return file.path == there.file; });
  auto offset = narrow<std::int64_t>(there.offset), length = narrow<std::int64_t>(there.length);
  if (found == files.end() || !offset || !length) return std::nullopt;
  return ItemPlace{FileId{static_cast<std::uint32_t>(found - files.begin())}, *offset, *length};
}

}  // namespace shw
