#include "core/repair/proof/check_against_certificate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/saved_tiles.h"
#include "core/repair/proof/ambiguous_elements.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/digests.h"
#include "core/repair/proof/item_hashes.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Non-tensor entries that contradict the certificate, each with the reason.
std::vector<std::string> wrong_entries(const Certificate& certificate,
                                       const Checkpoint& checkpoint) {
  std::vector<std::string> wrong;
  if (certificate.entries.empty()) return wrong;
  const EntryItems items(checkpoint);
  for (const EntryCertificate& entry : certificate.entries) {
    auto hash = items.hash(entry.fqn);
    if (!hash || *hash != entry.item)
      wrong.push_back(entry.fqn + ": the entry differs from the certified one");
  }
  return wrong;
}

// State of a check: its inputs, and the results so far.
struct CertificateCheck {
  const Certificate& certificate;
  const Checkpoint& checkpoint;
  const ItemHashes& hashes;
  std::vector<bool> is_changed = {};  // by file id; made when the first tensor is found broken
  std::vector<std::string> holes = {};
};

std::string file_of(const Checkpoint& checkpoint, ChunkId chunk) {
  auto item = checkpoint.item(chunk);
  return item ? checkpoint.file(item->file).path : std::string("no file");
}

std::string changed_tile_text(const Checkpoint& checkpoint, ChunkId chunk) {
  return "the chunk at " + to_text(checkpoint.offsets(chunk)) + " in " +
         file_of(checkpoint, chunk) + " differs from the certified one";
}

// Marks files whose items' digest differs from the certificate.
void find_changed_files(CertificateCheck& held) {
  held.is_changed.assign(held.checkpoint.files().size(), true);
  std::map<std::string_view, std::string_view> certified;
  for (const FileCertificate& file : held.certificate.files) certified[file.path] = file.items;
  std::vector<std::string> digests = digests_of_files(held.checkpoint, held.hashes);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    auto said = certified.find(held.checkpoint.files()[i].path);
    if (said != certified.end()) held.is_changed[i] = said->second != digests[i];
  }
}

std::vector<std::string> changed_files_text(CertificateCheck& held) {
  find_changed_files(held);
  std::set<std::string_view> changed;
  for (std::size_t i = 0; i < held.is_changed.size(); ++i) {
    if (held.is_changed[i]) changed.insert(held.checkpoint.files()[i].path);
  }
  std::vector<std::string> reasons;
  for (const FileCertificate& file : held.certificate.files) {
    if (!file.items.empty() && changed.contains(file.path))
      reasons.push_back(file.path + ": its chunks differ from the certified ones");
  }
  return reasons;
}

// Names the broken file for a broken tensor, because its tile is in one; certain if only one file
// is broken.
std::string changed_tiles_text(CertificateCheck& held, TensorId tensor) {
  if (held.is_changed.empty()) find_changed_files(held);
  const Checkpoint& checkpoint = held.checkpoint;
  std::vector<ChunkId> suspects;
  std::vector<std::string> files;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    auto item = checkpoint.item(chunk);
    if (item && !held.is_changed[static_cast<std::size_t>(index_of(item->file))]) continue;
    suspects.push_back(chunk);
    std::string file = file_of(checkpoint, chunk);
    if (files.empty() || files.back() != file) files.push_back(std::move(file));
  }
  if (suspects.size() == 1) return changed_tile_text(checkpoint, suspects.front());
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty()) return "its chunks differ from the certified ones";
  return "of its " + plural(suspects.size(), "chunk") + " in " + short_list_text(files) +
         " one or more differ from the certified ones";
}

// Checks the bytes of the tensor's tiles, and that each has its certified box.
std::string check_tiles_of(CertificateCheck& held, const TensorCertificate& entry,
                           TensorId tensor) {
  const Checkpoint& checkpoint = held.checkpoint;
  auto chunks = checkpoint.chunks(tensor);
  const char* elsewhere = "its chunks are not at their certified positions";
  if (entry.items != static_cast<std::int64_t>(chunks.size())) {
    return fmt::format("has {}, but the certificate names {}", plural(chunks.size(), "chunk"),
                       entry.items);
  }
  if (digest_of_items(hashes_of(checkpoint, tensor, held.hashes)) != entry.after)
    return changed_tiles_text(held, tensor);
  // Every item exists, but under another box.
  return digest_of_tiles(checkpoint, tensor, held.hashes) == entry.tiles ? "" : elsewhere;
}

// True if every element of the holes is certified as lost.
bool are_certified(const std::vector<Box>& holes, const TensorCertificate& entry) {
  if (holes.empty()) return true;
  auto kept = complement(entry.lost_boxes, entry.shape);
  if (!kept) return false;
  return std::all_of(holes.begin(), holes.end(), [&](const Box& hole) {
    return std::none_of(kept->begin(), kept->end(),
                        [&](const Box& box) { return intersect(hole, box).has_value(); });
  });
}

std::string holes_of_tensor_text(const TensorCertificate& entry, const std::vector<Box>& holes) {
  return fmt::format(
      "{}: {} of its {} elements are in no chunk ({}{}), as in the source: they are lost, and a "
      "load leaves there whatever was before",
      entry.fqn, total_volume(holes).value_or(0),
      entry.kept + entry.lost + entry.out_of_range + entry.damaged, to_text(holes.front()),
      holes.size() > 1 ? ", ..." : "");
}

std::string overlapping_chunks_text(const TensorCertificate& entry) {
  return entry.fqn +
         ": two of its chunks hold the same elements, as in the source: which one a load keeps is "
         "not defined";
}

std::string chunk_out_of_bounds_text(const TensorCertificate& entry) {
  return entry.fqn +
         ": one of its chunks reaches beyond the tensor, as in the source: it is not defined which "
         "elements belong to the tensor";
}

// Reason why the tensor contradicts the certificate; empty if it agrees.
std::string tensor_contradiction(CertificateCheck& held, const TensorCertificate& entry,
                                 TensorId tensor) {
  const Checkpoint& checkpoint = held.checkpoint;
  auto total = volume(checkpoint.shape(tensor));
  if (!same(entry.shape, checkpoint.shape(tensor))) {
    return "has the shape " + to_text(checkpoint.shape(tensor)) + " where " + to_text(entry.shape) +
           " was certified";
  }
  if (entry.dtype != name(checkpoint.dtype(tensor))) {
    return "has the dtype " + std::string(name(checkpoint.dtype(tensor))) + " where " +
           entry.dtype + " was certified";
  }
  auto told = checked_add(entry.kept, entry.lost);
  if (told) told = checked_add(*told, entry.out_of_range);
  if (told) told = checked_add(*told, entry.damaged);
  if (!total || told != total || entry.lost < 0 || entry.kept < 0 || entry.out_of_range < 0 ||
      entry.damaged < 0) {
    const std::string damaged =
        entry.damaged == 0 ? "" : fmt::format(", {} damaged", entry.damaged);
    return fmt::format("{} kept, {} lost{} and {} out of range do not add up to the elements of {}",
                       entry.kept, entry.lost, damaged, entry.out_of_range,
                       to_text(checkpoint.shape(tensor)));
  }
  if (entry.out_of_range != 0 && !entry.is_cast)
    return "the certificate lists elements out of range, but no cast";
  for (const Box& box : entry.lost_boxes) {
    if (!is_inside(box.offsets, box.sizes, checkpoint.shape(tensor)))
      return "a lost box is outside the tensor";
  }
  // check_tiles_of() checks below that these are the certified tiles.
  const AmbiguousElements ambiguous_elements =
      ambiguous_elements_of(checkpoint, tensor, held.hashes);
  if (!ambiguous_elements.outside.empty()) held.holes.push_back(chunk_out_of_bounds_text(entry));
  if (check_chunks_are_boxes(checkpoint, tensor)) {
    auto holes = saved_holes_of(checkpoint, tensor);
    if (!holes || !are_certified(*holes, entry))
      return "its chunks do not cover " + to_text(checkpoint.shape(tensor)) + " exactly once";
    if (!holes->empty()) held.holes.push_back(holes_of_tensor_text(entry, *holes));
    if (!ambiguous_elements.by_two.empty()) held.holes.push_back(overlapping_chunks_text(entry));
  }
  if (total_volume(entry.lost_boxes) != entry.lost || !are_disjoint(entry.lost_boxes))
    return "the lost boxes do not match the number of lost elements";
  if (entry.lost == 0 && !entry.fill.empty())
    return "the certificate lists a fill, but no lost elements";
  return check_tiles_of(held, entry, tensor);
}

// Adds tiles that share bytes, for certificates that do not mention them.
void add_tiles_sharing_bytes(CertificateCheck& held) {
  ChecksumMismatches shared;
  shared.add_shared_items(held.checkpoint, nullptr);
  std::map<std::string_view, std::string_view> by_tensor;
  for (const auto& [chunk, why] : shared.found())
    by_tensor.emplace(held.checkpoint.fqn(held.checkpoint.tensor_of(chunk)), why);
  if (by_tensor.empty()) return;
  for (const TensorCertificate& entry : held.certificate.tensors) {
    auto found = by_tensor.find(entry.fqn);
    if (found != by_tensor.end() && entry.damage.empty())
      held.holes.push_back(entry.fqn + ": " + std::string(found->second));
  }
}

}  // namespace

VerifyReport check_against_certificate(const Certificate& certificate, const Checkpoint& checkpoint,
                                       const ItemHashes& hashes, std::vector<std::string>& holes) {
  VerifyReport report;
  CertificateCheck held{certificate, checkpoint, hashes};
  std::vector<bool> certified(checkpoint.tensor_count(), false);
  for (const TensorCertificate& entry : certificate.tensors) {
    auto tensor = checkpoint.find(entry.fqn);
    std::string why =
        tensor ? tensor_contradiction(held, entry, *tensor) : "is certified, but missing";
    if (!why.empty()) report.reasons.push_back(entry.fqn + ": " + why);
    if (tensor) certified[index_of(*tensor)] = true;
    ++report.tensors;
    report.kept += entry.kept;
    report.lost += entry.lost;
    report.out_of_range += entry.out_of_range;
    report.damaged += entry.damaged;
  }
  for (std::size_t t = 0; t < certified.size(); ++t) {
    if (certified[t]) continue;
    report.reasons.push_back(std::string(checkpoint.fqn(TensorId{static_cast<std::uint32_t>(t)})) +
                             ": is present, but not in the certificate");
  }
  for (std::string& why : wrong_entries(certificate, checkpoint))
    report.reasons.push_back(std::move(why));
  if (report.reasons.empty()) report.reasons = changed_files_text(held);
  if (certificate.lossless && report.lost != 0)
    report.reasons.push_back("the certificate says lossless, but lists losses");
  bool changed = has_damage(certificate) || !certificate.dropped.empty() ||
                 certificate.trimmed != 0 || !certificate.of_other_ranks.empty() ||
                 std::any_of(certificate.tensors.begin(), certificate.tensors.end(),
                             [](const TensorCertificate& entry) { return entry.is_cast; });
  if (certificate.lossless && changed)
    report.reasons.push_back("the certificate says lossless, but lists data that was not kept");
  if (!certificate.lossless && report.lost == 0 && !changed && certificate.entries.empty())
    report.reasons.push_back("the certificate says that data is lost, but lists none");
  add_tiles_sharing_bytes(held);
  holes = std::move(held.holes);
  report.outcome =
      report.reasons.empty() ? VerifyReport::Outcome::kProved : VerifyReport::Outcome::kBroken;
  if (report.reasons.empty()) {
    report.reasons.push_back(
        "every chunk is at its certified position and has the certified bytes");
    if (!certificate.of_other_ranks.empty())
      report.reasons.push_back("not included: other ranks' values of " +
                               plural(certificate.of_other_ranks.size(), "entry") + " (" +
                               short_list_text(certificate.of_other_ranks) +
                               "); only the lowest rank's was kept");
    if (!certificate.left_out.empty())
      report.reasons.push_back("not included, though the source has it: " +
                               short_list_text(certificate.left_out));
  }
  return report;
}

}  // namespace shw
