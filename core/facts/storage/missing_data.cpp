#include "core/facts/storage/missing_data.h"

#include <fmt/core.h>

#include <limits>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/model/reachable.h"

namespace shw {

std::string_view missing_data_reason(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  if (!item) return volume(checkpoint.sizes(chunk)) == 0 ? "" : "no storage record";
  if (checkpoint.directory() == nullptr) return "";
  const FileRow& file = checkpoint.file(item->file);
  if (!file.safe) return "the path points outside the checkpoint folder";
  if (file.kind != EntryKind::kFile) return "the file is missing";
  auto end = checked_add(item->offset, item->length);
  bool inside = item->offset >= 0 && item->length >= 0 && end &&
                static_cast<std::uint64_t>(*end) <= file.size;
  return inside ? "" : "the file ends before it";
}

std::uint64_t missing_chunk_count(const Checkpoint& checkpoint, TensorId tensor) {
  std::uint64_t gone = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor))
    gone += !missing_data_reason(checkpoint, chunk).empty();
  return gone;
}

std::uint64_t missing_chunk_count(const Checkpoint& checkpoint) {
  std::uint64_t gone = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    gone += missing_chunk_count(checkpoint, TensorId{t});
  return gone;
}

bool is_in_missing_file(const Checkpoint& checkpoint, const std::optional<ItemPlace>& item) {
  return item && item->file != FileId::kNone && checkpoint.directory() != nullptr &&
         checkpoint.file(item->file).safe && !is_reachable(checkpoint, *item);
}

void LostElements::add(const Checkpoint& checkpoint, ChunkId chunk) {
  count_ = checked_add(count_, volume(checkpoint.sizes(chunk)).value_or(0))
               .value_or(std::numeric_limits<std::int64_t>::max());
}

void LostElements::write(const Checkpoint& checkpoint, TensorId tensor, std::int64_t& elements,
                         std::vector<std::string>& lines) const {
  elements = checked_add(elements, count_).value_or(std::numeric_limits<std::int64_t>::max());
  if (count_ == 0 || lines.size() == kMaxEvidence) return;
  const auto all = static_cast<std::uint64_t>(volume(checkpoint.shape(tensor)).value_or(0));
  lines.push_back(fmt::format("{}: {} of {}", checkpoint.fqn(tensor),
                              human_count(static_cast<std::uint64_t>(count_)),
                              plural(all, "element")));
}

}  // namespace shw
