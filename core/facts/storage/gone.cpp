#include "core/facts/storage/gone.h"

#include "core/base/checked.h"

namespace shw {

std::string_view why_gone(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  if (!item) return volume(checkpoint.sizes(chunk)) == 0 ? "" : "no storage record";
  if (checkpoint.directory() == nullptr) return "";
  const FileRow& file = checkpoint.file(item->file);
  if (!file.safe) return "the path leaves the checkpoint";
  if (file.kind != EntryKind::kFile) return "the file is not there";
  auto end = checked_add(item->offset, item->length);
  bool inside = item->offset >= 0 && item->length >= 0 && end &&
                static_cast<std::uint64_t>(*end) <= file.size;
  return inside ? "" : "the file ends before it";
}

std::uint64_t gone_tiles(const Checkpoint& checkpoint, TensorId tensor) {
  std::uint64_t gone = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor)) gone += !why_gone(checkpoint, chunk).empty();
  return gone;
}

std::uint64_t gone_tiles(const Checkpoint& checkpoint) {
  std::uint64_t gone = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    gone += gone_tiles(checkpoint, TensorId{t});
  return gone;
}

}  // namespace shw
