#include "core/repair/proof/certify.h"

#include <algorithm>
#include <map>

#include "core/base/team.h"
#include "core/base/version.h"
#include "core/facts/storage/filled.h"
#include "core/formats/replicas.h"
#include "core/formats/table.h"
#include "core/repair/lower/saved_tiles.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/ambiguous_elements.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/compare_target.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/run/lost.h"
#include "core/repair/run/target_run.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// Lists entries that have another entry's value under their current names: those that this repair
// replaces, and those of earlier repairs.
Status certify_replaced(const ProvingTarget& proving, Certificate& certificate) {
  const Checkpoint& source = proving.all.source();
  const FilledReport earlier = filled_report_of(source);
  // By FQN in the source: the entry whose value it has.
  std::map<std::string_view, std::string_view> replaced_before;
  for (const FilledEntry& entry : earlier.entries) replaced_before.emplace(entry.fqn, entry.from);
  std::optional<EntryItems> items;
  for (const TargetNonTensorEntry& object : proving.all.objects) {
    if (object.created != nullptr) continue;
    std::string from = source.objects()[object.object].fqn;
    if (object.object == object.own) {
      auto before = replaced_before.find(from);
      if (before == replaced_before.end()) continue;
      from = before->second;
      certificate.lossless = false;
    }
    if (!items) items.emplace(proving.result);
    if (!items->has(object.fqn))
      return fail(ErrorKind::kUnsupported,
                  "a repair replaced its value, and this format cannot record that",
                  Place{.file = {}, .tensor = object.fqn}, "leave it out, or write DCP");
    SHW_TRY(std::string item, items->hash(object.fqn));
    certificate.entries.push_back({object.fqn, from, std::move(item)});
  }
  certificate.lossless = certificate.lossless && keeps_every_value(proving.all);
  return {};
}

// Number of elements of a tensor that were out of range of their new dtype. The cast counted all of
// them; elements that are also lost are read again here and subtracted.
Result<std::int64_t> out_of_range_in(const CertifiedRun& done, std::uint32_t entry,
                                     const TargetTensor& tensor) {
  const ProvingTarget& proving = done.proving;
  std::uint64_t count = 0;
  for (std::uint32_t tile = 0; tile < proving.places.tiles_of(entry); ++tile) {
    const auto made = proving.places.find(entry, tile);
    if (made && proving.written.made[*made]) count += proving.written.made[*made]->out_of_range;
  }
  if (count == 0 || tensor.loss.boxes.empty()) return static_cast<std::int64_t>(count);
  PartReader reader(proving.all, done.run.memory);
  SHW_TRY(const std::int64_t lost,
          lost_out_of_range(PartIndex(tensor), whole(tensor.shape), reader, proving.progress));
  return static_cast<std::int64_t>(count) - lost;
}

// Parts of the source next to its entries that the result lacks.
std::vector<std::string> dropped_source_parts(const Checkpoint& source, const Checkpoint& result) {
  std::vector<std::string> left = noted_additions(source);
  if (left.empty()) return left;
  const std::vector<std::string> kept = noted_additions(result);
  std::erase_if(left, [&](const std::string& one) {
    return std::find(kept.begin(), kept.end(), one) != kept.end();
  });
  return left;
}

// Adds the source's holes that the plan does not fill.
void add_holes(const Checkpoint& source, TensorId tensor, TensorCertificate& entry) {
  std::size_t looks = 20'000'000;
  const std::vector<Box> holes = saved_holes_of(source, tensor).value_or(std::vector<Box>{});
  if (holes.empty()) return;
  if (!add_all_disjoint(entry.lost_boxes, holes, looks))
    entry.lost_boxes = {whole(source.shape(tensor))};
}

// Adds the tensor's losses: by this plan, by an earlier repair, or in a hole that stays.
void add_losses_of_tensor(const CertifiedRun& done, const TargetEntry& entry,
                          const TargetTensor& tensor, TensorCertificate& certified) {
  const Loss& loss = tensor.loss;
  certified.lost_boxes = loss.boxes;
  certified.fill = loss.fill;
  certified.fill_from = loss.fill_from;
  certified.fill_checkpoint = loss.fill_checkpoint;
  // A tensor that is rewritten has no holes.
  if (done.proving.form.keeps_files && entry.made == nullptr)
    add_holes(done.proving.all.source(), entry.as_saved, certified);
  certified.lost = total_volume(certified.lost_boxes).value_or(0);
}

// If files are kept: digest of the tensor's items that are unchanged, whichever tiles use them now.
std::string digest_of_unchanged_items(const CertifiedRun& done, TensorId tensor) {
  if (!done.proving.form.keeps_files) return "";
  ItemHashes came = hashes_of(done.proving.all.source(), tensor, done.proved.before);
  std::erase(came, kNoHash);
  return came.empty() ? "" : digest_of_items(std::move(came));
}

Result<TensorCertificate> certify_entry(const CertifiedRun& done, std::uint32_t number) {
  const ProvingTarget& proving = done.proving;
  const Checkpoint& result = proving.result;
  const TargetEntry& entry = proving.all.tensors[number];
  SHW_TRY(WrittenTensor written, written_tensor(proving.all, entry, proving.form, result));
  TensorCertificate tensor = certify_tensor(result, written.at, done.proved.hashes);
  add_losses_of_tensor(done, entry, written.tensor, tensor);
  SHW_TRY(tensor.out_of_range, out_of_range_in(done, number, written.tensor));
  record_mismatches(result, written.at, proving.mismatches, tensor,
                    ambiguous_elements_of(result, written.at, done.proved.hashes));
  tensor.kept =
      volume(written.tensor.shape).value_or(0) - tensor.lost - tensor.out_of_range - tensor.damaged;
  tensor.is_cast = written.tensor.is_cast;
  tensor.padding = written.tensor.padding;
  if (written.tensor.before) {
    tensor.before = digest_of_unchanged_items(done, *written.tensor.before);
    std::string_view before = proving.all.source().fqn(*written.tensor.before);
    if (before != entry.fqn) tensor.renamed_from = before;
  }
  return tensor;
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

Result<Certificate> certify_target(const CertifiedRun& done) {
  const ProvingTarget& proving = done.proving;
  const Checkpoint& source = proving.all.source();
  Certificate certificate;
  certificate.source = source.directory()->name();
  certificate.version = kProgramVersion;
  certificate.operations = done.run.operations;
  certificate.steps = done.run.steps;
  certificate.dropped = proving.all.dropped;
  certificate.trimmed = proving.all.trimmed;
  certificate.plan = done.run.plan;
  if (proving.form.keeps_files)
    proving.mismatches.add_shared_items(proving.result, proving.progress);
  for (std::uint32_t i = 0; i < proving.all.tensors.size(); ++i) {
    SHW_TRY(TensorCertificate tensor, certify_entry(done, i));
    certificate.lossless =
        certificate.lossless && tensor.lost == 0 && !tensor.is_cast && tensor.damage.empty();
    certificate.tensors.push_back(std::move(tensor));
  }
  SHW_TRY(certificate.of_other_ranks,
          differing_entries_left_out(source, certificate.dropped, proving.progress));
  if (!proving.form.keeps_files) {
    certificate.left_out = dropped_source_parts(source, proving.result);
    certificate.left_out.insert(certificate.left_out.end(), done.neighbours.begin(),
                                done.neighbours.end());
  }
  certificate.lossless = certificate.lossless && certificate.dropped.empty() &&
                         certificate.trimmed == 0 && certificate.of_other_ranks.empty();
  SHW_CHECK(certify_replaced(proving, certificate));
  return certificate;
}

Status write_certificate(const WrittenFolder& written, const ItemHashes& hashes, bool integrity,
                         Certificate& certificate, Progress* progress) {
  // Written before the certificate, which covers them.
  if (has_lost(certificate))
    SHW_CHECK(write_text(written.folder, kLostFile, lost_to_json(certificate)));
  if (integrity) SHW_CHECK(write_integrity(written.result, written.folder, progress));
  SHW_TRY(certificate.objects, certify_objects(written.result, progress));
  certificate.lossless = certificate.lossless && !has_damage(certificate);
  SHW_TRY(certificate.files, certify_files(written.result, hashes, progress));
  return write_text(written.folder, kCertificateFile, certificate_to_json(certificate));
}

Result<bool> decide_on_rank0(Team* team, const std::function<Result<bool>()>& work) {
  SHW_TRY(Bytes told, run_on_rank0_and_broadcast(team, "certify", [&]() -> Result<Bytes> {
            SHW_TRY(bool is_good, work());
            return Bytes(1, std::byte{is_good});
          }));
  return told == Bytes(1, std::byte{1});
}

}  // namespace shw
