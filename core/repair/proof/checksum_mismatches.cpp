#include "core/repair/proof/checksum_mismatches.h"

#include <algorithm>

#include "core/base/encoder.h"
#include "core/base/team.h"
#include "core/base/words.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/shared_ranges.h"
#include "core/tiles/exact_tiling.h"

namespace shw {

void ChecksumMismatches::add(ChunkId chunk, std::string why) {
  if (why.empty()) return;
  std::lock_guard lock(guard_);
  found_.emplace(chunk, std::move(why));
}

void ChecksumMismatches::add_shared_items(const Checkpoint& result, const Progress* progress) {
  if (!result.format().traits.has_index) return;
  auto in_words = [&](const Claim& claim) {
    std::string name(fqn_of(result, claim));
    return claim.is_chunk() ? name + " " + to_text(box_of(result, claim.chunk)) : name;
  };
  const std::vector<SharedRange> shared = find_shared_ranges(result, progress);
  bool are_all = shared.size() < kMaxShared;
  for (const SharedRange& range : shared) {
    are_all = are_all && range.claims.size() < kMaxShared;
    if (is_tied(result, range)) continue;
    const std::string file = result.file(range.place.file).path;
    for (std::size_t i = 0; i < range.claims.size(); ++i) {
      if (!range.claims[i].is_chunk()) continue;
      const Claim& other = range.claims[i == 0 ? 1 : 0];
      add(range.claims[i].chunk, file + ": the bytes of its chunk " +
                                     to_text(box_of(result, range.claims[i].chunk)) +
                                     " are those of " + in_words(other) + " as well");
    }
  }
  if (are_all) return;
  for (ChunkId chunk : result.chunks())
    add(chunk, "so many records point to the same bytes that not all of them were distinguished");
}

Status ChecksumMismatches::share(Team& team) {
  Encoder own;
  for (const auto& [chunk, why] : found_) {
    own.add(std::uint64_t{index_of(chunk)});
    own.add(why);
  }
  SHW_TRY(auto told, team.allgather(own.take(), "data that does not match its checksum"));
  for (const Bytes& message : told) {
    Decoder theirs(message);
    while (!theirs.is_at_end()) {
      SHW_TRY(std::uint64_t chunk, theirs.number());
      SHW_TRY(std::string why, theirs.text());
      found_.emplace(ChunkId{static_cast<std::uint32_t>(chunk)}, std::move(why));
    }
  }
  return {};
}

void record_mismatches(const Checkpoint& result, TensorId tensor,
                       const ChecksumMismatches& mismatches, TensorCertificate& entry,
                       const AmbiguousElements& ambiguous_elements) {
  if (mismatches.found().empty() && ambiguous_elements.why().empty()) return;
  std::vector<Box> damaged;
  for (ChunkId chunk : result.chunks(tensor)) {
    auto found = mismatches.found().find(chunk);
    if (found == mismatches.found().end()) continue;
    if (damaged.empty()) entry.damage = found->second;
    damaged.push_back(box_of(result, chunk));
  }
  if (damaged.size() > 1)
    entry.damage += " (and so in " + plural(damaged.size() - 1, "more chunk") + ")";
  if (entry.damage.empty()) entry.damage = ambiguous_elements.why();
  damaged.insert(damaged.end(), ambiguous_elements.boxes.begin(), ambiguous_elements.boxes.end());
  // Tiles may overlap, and some of their elements may be lost.
  std::size_t looks = 20'000'000;
  std::vector<Box> gone = entry.lost_boxes;
  if (!add_all_disjoint(gone, damaged, looks)) gone = {whole(result.shape(tensor))};
  entry.damaged = total_volume(gone).value_or(0) - entry.lost;
}

std::map<std::string, std::string> damage_by_fqn(const Certificate& certificate) {
  std::map<std::string, std::string> damage;
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (!tensor.damage.empty()) damage[tensor.fqn] = tensor.damage;
  }
  for (const ObjectCertificate& object : certificate.objects) {
    if (!object.damage.empty()) damage[object.fqn] = object.damage;
  }
  return damage;
}

bool has_damage(const Certificate& certificate) {
  auto is_damaged = [](const auto& one) { return !one.damage.empty(); };
  return std::any_of(certificate.tensors.begin(), certificate.tensors.end(), is_damaged) ||
         std::any_of(certificate.objects.begin(), certificate.objects.end(), is_damaged);
}

}  // namespace shw
