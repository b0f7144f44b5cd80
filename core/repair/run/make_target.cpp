#include "core/repair/run/make_target.h"

#include <memory>

#include "core/exec/folder_run.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/certify.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/proof/compare_target.h"
#include "core/repair/proof/item_hashes.h"
#include "core/repair/run/config_dtype.h"
#include "core/repair/run/files_to_copy.h"
#include "core/repair/run/made_files.h"
#include "core/repair/run/recheck_inputs.h"
#include "core/transform/unclaimed_records.h"

namespace shw {
namespace {

// Proves non-tensor entries and the rest of the metadata.
Status prove_entries_and_metadata(const ProvingTarget& proving) {
  SHW_TRY(auto differs, differing_target_entry(proving.all, proving.result));
  if (differs) return tl::unexpected<Error>(std::move(*differs));
  const bool keeps_attributes =
      !proving.form.keeps_files ||
      other_attributes(proving.result) == other_attributes(proving.all.source());
  return keeps_attributes ? Status{} : differs_from_target("", "other attributes");
}

// Number of tensors that were rounded to their dtype; 0 if the result is lossy for another reason.
std::size_t count_if_only_rounded(const Certificate& certificate) {
  if (certificate.lossless || !certificate.dropped.empty() || certificate.trimmed != 0 ||
      !certificate.of_other_ranks.empty() || has_damage(certificate))
    return 0;
  std::size_t rounded = 0;
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost != 0) return 0;
    rounded += tensor.is_cast ? 1 : 0;
  }
  return rounded;
}

// Writes everything next to the tiles, and the certificate; returns whether nothing is lost.
Result<bool> certify_and_write(const CertifiedRun& done, RepairResult& told) {
  const ProvingTarget& proving = done.proving;
  SHW_CHECK(prove_entries_and_metadata(proving));
  SHW_TRY(Certificate certificate, certify_target(done));
  told.out_of_range = out_of_range_in(certificate);
  told.of_other_ranks = certificate.of_other_ranks;
  told.left_out = proving.form.keeps_files ? done.neighbours : certificate.left_out;
  SHW_CHECK(write_certificate(proving.written, done.proved.hashes, done.run.integrity, certificate,
                              proving.progress));
  told.damage = damage_by_fqn(certificate);
  told.rounded = count_if_only_rounded(certificate);
  return certificate.lossless;
}

Status prove_target(const ProvingTarget& proving, const TargetRun& run,
                    const std::vector<std::string>& neighbours, RepairResult& told) {
  if (proving.progress != nullptr)
    proving.progress->begin(Phase::kVerifying, item_bytes(proving.result), true);
  SHW_TRY(const ProvedTiles proved, prove_tiles(proving));
  SHW_TRY(told.lossless, decide_on_rank0(proving.written.team, [&] {
            return certify_and_write({proving, run, neighbours, proved}, told);
          }));
  return {};
}

}  // namespace

Result<Certificate> certify_in_place(const TargetState& all, const TargetRun& run,
                                     const Outputs& outputs, const Checkpoint& result,
                                     WritableDirectory& files, Progress* progress) {
  const CopyHasher none_passed;
  const WrittenFolder written{result, files, {}, none_passed};
  const ResultPlaces places(outputs, {});
  ChecksumMismatches doubts;
  const ProvingTarget proving{all, run.form, places, written, progress, doubts, true};
  if (progress != nullptr) progress->begin(Phase::kVerifying, item_bytes(result), true);
  SHW_TRY(const ProvedTiles proved, prove_tiles(proving));
  SHW_CHECK(prove_entries_and_metadata(proving));
  const std::vector<std::string> none_left;
  SHW_TRY(Certificate certificate, certify_target({proving, run, none_left, proved}));
  SHW_TRY(certificate.objects, certify_objects(result, progress));
  certificate.lossless = certificate.lossless && !has_damage(certificate);
  SHW_TRY(certificate.files, certify_files(result, proved.hashes, progress));
  return certificate;
}

Result<PreparedRun> prepare_run(const TargetState& all, const TargetRun& wanted,
                                Progress* progress) {
  if (all.source().directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  SHW_TRY(LoweredTarget lowered, lower_target(all, wanted.form, progress));
  PreparedRun prepared;
  FolderRun& run = prepared.run;
  run.writer = wanted.form.format->writer;
  run.outputs = std::move(lowered.outputs);
  run.laid_out = std::move(lowered.laid_out);
  run.program = std::move(lowered.program);
  run.inputs = std::move(lowered.inputs);
  run.made = std::move(lowered.made);
  run.out = wanted.form.out;
  run.request = wanted.request;
  run.memory = wanted.memory;
  run.device = wanted.device;
  run.partial = wanted.partial;
  run.team = wanted.team;
  SHW_TRY(run.watched, watch_inputs(run.inputs));
  if (wanted.form.keeps_files) {
    prepared.neighbours = add_files_to_copy(all.source(), run);
  } else {
    prepared.neighbours = add_companions_to_copy(all.source(), wanted.weights_only, run);
    update_config_dtype(all.source(), run);
    SHW_CHECK(write_generated_files(all.source(), run));
  }
  return prepared;
}

Result<RepairResult> make_target(Store& store, const TargetState& all, const TargetRun& wanted,
                                 Progress* progress) {
  SHW_TRY(PreparedRun prepared, prepare_run(all, wanted, progress));
  FolderRun& run = prepared.run;
  const ResultPlaces places(run.outputs, run.laid_out);
  const InputChangeCheck touch{run.watched, run.inputs, all.inputs.front(), wanted.memory};
  RepairResult result{wanted.form.out, wanted.form.out + "/" + kCertificateFile};
  auto prove = [&](const WrittenFolder& written) -> Status {
    ChecksumMismatches mismatches;
    const ProvingTarget proving{all, wanted.form, places, written, progress, mismatches};
    SHW_CHECK(prove_target(proving, wanted, prepared.neighbours, result));
    return recheck_changed_inputs(touch, written, progress);
  };
  SHW_TRY(FolderResult made, make_folder(store, std::move(run), prove, progress));
  result.files_kept = made.files_kept;
  result.device = made.device;
  result.traffic = made.traffic;
  return result;
}

}  // namespace shw
