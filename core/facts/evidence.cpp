#include "core/facts/evidence.h"

#include <algorithm>

#include "core/base/checked.h"

namespace shw {

bool is_reachable(const Checkpoint& checkpoint, const ItemPlace& place) {
  if (place.file == FileId::kNone) return false;
  const FileRow& file = checkpoint.file(place.file);
  if (!file.safe || file.kind != EntryKind::kFile) return false;
  if (place.offset < 0 || place.length < 0) return false;
  auto end = checked_add(place.offset, place.length);
  return end && static_cast<std::uint64_t>(*end) <= file.size;
}

std::string place_text(const Checkpoint& checkpoint, const ItemPlace& place) {
  auto end = checked_add(place.offset, place.length);
  return checkpoint.file(place.file).path + " [" + std::to_string(place.offset) + ", " +
         (end ? std::to_string(*end) : "beyond 2^63") + ")";
}

std::string chunk_text(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
  std::string fqn(checkpoint.fqn(tensor));
  return fqn + " offsets " + to_text(offsets) + " sizes " + to_text(sizes);
}

void add_subject(std::vector<std::string>& subjects, std::string_view subject) {
  if (subjects.empty() || subjects.back() != subject) subjects.emplace_back(subject);
}

std::vector<std::string> capped(const std::vector<std::string>& all) {
  auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxEvidence));
  return {all.begin(), last};
}

std::vector<Box> capped(const std::vector<Box>& all) {
  auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxEvidence));
  return {all.begin(), last};
}

}  // namespace shw
