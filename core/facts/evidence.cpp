#include "core/facts/evidence.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/checked.h"

namespace shw {

std::string place_text(const Checkpoint& checkpoint, const ItemPlace& place) {
  auto end = checked_add(place.offset, place.length);
  return fmt::format("{} [{}, {})", checkpoint.file(place.file).path, place.offset,
                     end ? std::to_string(*end) : "beyond 2^63");
}

std::string chunk_text(const Checkpoint& checkpoint, TensorId tensor, ChunkId chunk) {
  ExtentsView offsets = checkpoint.offsets(chunk), sizes = checkpoint.sizes(chunk);
  std::string fqn(checkpoint.fqn(tensor));
  return fqn + " offsets " + to_text(offsets) + " sizes " + to_text(sizes);
}

std::string unlisted_chunk_text(const Checkpoint& checkpoint, TensorId tensor,
                                const UnlistedChunk& tile) {
  const ItemPlace place{tile.file, static_cast<std::int64_t>(tile.offset),
                        static_cast<std::int64_t>(tile.length)};
  return std::string(checkpoint.fqn(tensor)) + " offsets " + to_text(tile.box.offsets) + " sizes " +
         to_text(tile.box.sizes) + ": " + place_text(checkpoint, place);
}

std::vector<std::string> ranks_of_files(const Checkpoint& checkpoint,
                                        const std::vector<bool>& files) {
  std::set<std::uint32_t> ranks;
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (files[f] && file.rank) ranks.insert(*file.rank);
  }
  std::vector<std::string> texts;
  for (std::uint32_t rank : ranks) texts.push_back(fmt::format("{}", rank));
  return texts;
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
