#include "core/repair/proof/certify.h"

#include <map>
#include <set>

#include "core/base/team.h"
#include "core/base/version.h"
#include "core/formats/item_pass.h"
#include "core/formats/replicas.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/saved_tiles.h"
#include "core/repair/plan/entries.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/ambiguous_elements.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/run/lost.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Which boxes of the new tensor came over as items, and from which old chunk.
Status check_relabels(const CarriedOut& done, TensorId made, const PlannedTensor& planned) {
  std::map<Extents, ChunkId> by_offsets;
  for (ChunkId chunk : done.result.chunks(made)) {
    if (volume(done.result.sizes(chunk)) != 0)
      by_offsets[copy_of(done.result.offsets(chunk))] = chunk;
  }
  for (const PlannedChunk& chunk : planned.chunks) {
    if (!chunk.item || is_empty(chunk.box)) continue;
    Hash128 expected = done.before[index_of(*chunk.item)];
    if (auto place = place_elsewhere(done.source, chunk)) {
      SHW_TRY(expected, ItemHasher(done.source).hash(*place, nullptr));
    }
    auto found = by_offsets.find(chunk.box.offsets);
    if (found != by_offsets.end() && same(done.result.sizes(found->second), chunk.box.sizes) &&
        expected == done.after[index_of(found->second)]) {
      continue;
    }
    return fail(
        ErrorKind::kIo,
        "the tile at " + to_text(chunk.box.offsets) + " is not the one that was to stay as it is",
        {done.source.file(done.source.item(*chunk.item)->file).path, std::nullopt,
         std::string(done.source.fqn(planned.tensor))});
  }
  return {};
}

Status certify_entries(const CarriedOut& done, const FilledRecord& filled,
                       Certificate& certificate) {
  if (done.plan.entries.empty() && filled.entries.empty()) return {};
  const EntryItems old_items(done.source), items(done.result);
  std::set<std::string_view> told;
  for (const PlannedEntry& entry : done.plan.entries) {
    const NonTensorEntry &to = done.source.objects()[entry.object],
                         &from = done.source.objects()[entry.item_of];
    SHW_TRY(std::string before, old_items.hash(from.fqn));
    SHW_TRY(std::string after, items.hash(to.fqn));
    if (before != after)
      return fail(ErrorKind::kIo, "is not the entry that it was to become",
                  Place{.file = {}, .tensor = to.fqn});
    certificate.entries.push_back({to.fqn, from.fqn, after});
    told.insert(to.fqn);
  }
  for (const FilledEntry& entry : filled.entries) {
    if (told.contains(entry.fqn)) continue;
    SHW_TRY(std::string item, items.hash(entry.fqn));
    certificate.entries.push_back({entry.fqn, entry.from, item});
  }
  certificate.lossless = certificate.lossless && filled.entries.empty();
  return {};
}

// What is gone of it: by this repair, by one before, or in a hole that nothing mends.
void note_loss(const Checkpoint& source, TensorId tensor, bool planned, const FilledTensor* filled,
               TensorCertificate& entry) {
  if (filled != nullptr) {
    entry.lost = filled->lost;
    entry.lost_boxes = filled->boxes;
    entry.fill = filled->fill;
    entry.fill_from = filled->fill_from;
    entry.fill_checkpoint = filled->fill_checkpoint;
  }
  if (planned) return;
  std::size_t looks = 20'000'000;
  const std::vector<Box> holes = holes_of(source, tensor).value_or(std::vector<Box>{});
  if (holes.empty()) return;
  if (!add_all_disjoint(entry.lost_boxes, holes, looks))
    entry.lost_boxes = {whole(source.shape(tensor))};
  entry.lost = total_volume(entry.lost_boxes).value_or(0);
}

// Of a tensor of the source what it is now. `planned` is null where nothing was to become of it,
// `loss` where nothing of it was filled.
Result<TensorCertificate> certify_planned(const CarriedOut& done, TensorId tensor,
                                          const PlannedTensor* planned, std::string_view fqn,
                                          const FilledTensor* loss) {
  auto made = done.result.find(fqn);
  if (!made) {
    return fail(ErrorKind::kIo, "is missing in what was written",
                Place{.file = {}, .tensor = std::string(fqn)});
  }
  TensorCertificate entry = certify_tensor(done.result, *made, done.after);
  if (fqn != done.source.fqn(tensor)) entry.renamed_from = done.source.fqn(tensor);
  const ItemHashes before = hashes_of(done.source, tensor, done.before);
  ItemHashes came = before;
  std::erase(came, kNoHash);
  if (!came.empty()) entry.before = digest_of_items(std::move(came));
  note_loss(done.source, tensor, planned != nullptr, loss, entry);
  if (planned != nullptr) {
    entry.padding = padding_left_out(done.source, *planned);
    SHW_CHECK(check_relabels(done, *made, *planned));
  } else if (digest_of_items(before) != entry.after ||
             digest_of_tiles(done.source, tensor, done.before) != entry.tiles) {
    return fail(ErrorKind::kIo, "differs from its source after it was copied",
                Place{.file = {}, .tensor = entry.fqn});
  }
  record_mismatches(done.result, *made, done.mismatches, entry,
                    contested_in(done.result, *made, done.after));
  entry.kept = volume(done.result.shape(*made)).value_or(0) - entry.lost - entry.damaged;
  return entry;
}

}  // namespace

TensorCertificate certify_tensor(const Checkpoint& result, TensorId tensor,
                                 const ItemHashes& hashes) {
  TensorCertificate entry;
  entry.fqn = result.fqn(tensor);
  entry.items = static_cast<std::int64_t>(result.chunks(tensor).size());
  entry.after = digest_of_items(hashes_of(result, tensor, hashes));
  entry.tiles = digest_of_tiles(result, tensor, hashes);
  entry.shape = copy_of(result.shape(tensor));
  entry.dtype = name(result.dtype(tensor));
  return entry;
}

Result<Certificate> certify(const CarriedOut& done, Progress* progress) {
  Certificate certificate;
  certificate.source = done.plan.checkpoint;
  certificate.version = kProgramVersion;
  certificate.operations = done.plan.operations;
  std::map<TensorId, const PlannedTensor*> planned;
  for (const PlannedTensor& tensor : done.plan.tensors) planned[tensor.tensor] = &tensor;
  const FilledRecord filled = filled_after(done.source, done.plan);
  done.mismatches.add_shared_items(done.result, progress);
  std::map<std::string_view, const FilledTensor*> losses;
  for (const FilledTensor& tensor : filled.tensors) losses[tensor.fqn] = &tensor;
  for (TensorId tensor : done.source.tensors()) {
    auto change = planned.find(tensor);
    const PlannedTensor* to = change == planned.end() ? nullptr : change->second;
    std::string_view fqn = to != nullptr ? fqn_after(done.source, *to) : done.source.fqn(tensor);
    auto loss = losses.find(fqn);
    SHW_TRY(TensorCertificate entry,
            certify_planned(done, tensor, to, fqn, loss == losses.end() ? nullptr : loss->second));
    certificate.lossless = certificate.lossless && entry.lost == 0 && entry.damage.empty();
    certificate.tensors.push_back(std::move(entry));
  }
  SHW_CHECK(certify_entries(done, filled, certificate));
  SHW_TRY(certificate.of_other_ranks, entries_of_other_ranks(done.source, progress));
  certificate.lossless = certificate.lossless && certificate.of_other_ranks.empty();
  return certificate;
}

Status write_certificate(const WrittenFolder& written, const ItemHashes& hashes, bool integrity,
                         Certificate& certificate, Progress* progress) {
  // Both before what certifies them.
  if (has_lost(certificate))
    SHW_CHECK(write_text(written.folder, kLostFile, lost_to_json(certificate)));
  if (integrity) SHW_CHECK(write_integrity(written.result, written.folder, progress));
  SHW_TRY(certificate.objects, certify_objects(written.result, progress));
  certificate.lossless = certificate.lossless && !has_damage(certificate);
  SHW_TRY(certificate.files, certify_files(written.result, hashes, progress));
  return write_text(written.folder, kCertificateFile, certificate_to_json(certificate));
}

Result<bool> run_on_rank0_and_broadcast(Team* team, const std::function<Result<bool>()>& work) {
  SHW_TRY(Bytes told, run_on_rank0_and_broadcast(team, "certify", [&]() -> Result<Bytes> {
            SHW_TRY(bool is_good, work());
            return Bytes(1, std::byte{is_good});
          }));
  return told == Bytes(1, std::byte{1});
}

}  // namespace shw
