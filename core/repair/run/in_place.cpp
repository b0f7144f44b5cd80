// Repairs in place: only `.metadata` is replaced, and only if no tensor byte moves. Each step
// leaves either the old or the new state to open, wherever the run is killed:
//
//   0 .shardwright-request gets the plan, and .shardwright-owner the process
//   1 certificate.json, if there is one, is kept as certificate.json.shardwright-undo
//   2 .metadata is copied to a temporary name, made durable, renamed to .metadata.shardwright-undo
//   3 .metadata.shardwright-new and certificate.json.shardwright-new are written, made durable and
//     opened as the checkpoint that they will make
//   4 .metadata.shardwright-new is renamed to .metadata: from here on it is the new state
//   5 certificate.json.shardwright-new is renamed to certificate.json; the files of 0 are deleted
//
// 1 comes before 2: if .metadata.shardwright-undo exists, a certificate.json without a kept one is
// ours. Undo goes the other way and renames .metadata last.
#include "core/repair/run/in_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/facts/storage/integrity.h"
#include "core/formats/items/hash_ranges.h"
#include "core/formats/open.h"
#include "core/io/folder_lock.h"
#include "core/io/permissions.h"
#include "core/io/remote/remote_path.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/operations.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/in_place_files.h"
#include "core/repair/run/request.h"
#include "core/repair/run/run_plan.h"

namespace shw {
namespace {

using in_place::contents, in_place::is_there, in_place::remove_if_there;
using in_place::kUndo, in_place::kNew, in_place::kHalf, in_place::kOldCertificate,
    in_place::kNewCertificate, in_place::kHalfCertificate;

// A directory with one file replaced by another: opens the new state before it takes effect.
class ReplacedFileDirectory final : public Directory {
 public:
  ReplacedFileDirectory(std::shared_ptr<const Directory> inner, std::string shown, std::string real)
      : inner_(std::move(inner)), shown_(std::move(shown)), real_(std::move(real)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override { return inner_->list(limit); }
  Entry stat(const std::string& path) const override {
    Entry entry = inner_->stat(path == shown_ ? real_ : path);
    entry.path = path;
    return entry;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path == shown_ ? real_ : path);
  }

 private:
  std::shared_ptr<const Directory> inner_;
  std::string shown_, real_;
};

// Claims the checkpoint by creating the owner file; only one process succeeds. The owner file of a
// dead process is removed first, under a lock: otherwise two processes could find it, and the
// second would remove the first one's new file.
Status claim_checkpoint(Store& store, WritableDirectory& files, const Directory& directory) {
  SHW_TRY(const FolderLock lock, FolderLock::take(directory.name()));
  SHW_CHECK(in_place::check_not_claimed_by_other(store, directory));
  SHW_CHECK(remove_if_there(files, directory, kOwnerFile));
  const std::string owner = own_process_identity();
  auto file = files.create(kOwnerFile);
  if (!file && is_there(directory, kOwnerFile))
    return fail(ErrorKind::kUsage, "is being repaired by another process", {directory.name()});
  if (!file) return tl::unexpected<Error>(std::move(file).error());
  Status claimed = (*file)->write(std::as_bytes(std::span(owner)));
  if (claimed) claimed = (*file)->finish();
  if (!claimed) static_cast<void>(files.remove(kOwnerFile));
  return claimed;
}

// Removes leftovers of a run that was killed before it changed anything.
Status clear_leftovers(WritableDirectory& files, const Directory& directory) {
  SHW_CHECK(in_place::remove_work_files_except_owner(files, directory));
  if (!is_there(directory, kUndo)) return remove_if_there(files, directory, kOldCertificate);
  SHW_TRY(Bytes kept, contents(directory, kUndo));
  SHW_TRY(Bytes now, contents(directory, kMetadataFile));
  if (kept == now) return {};
  return fail(ErrorKind::kUsage, "an earlier repair in place can still be undone", {kUndo},
              "run `shardwright undo`, or remove that file, then repair again");
}

// Makes a durable copy that appears under its name only when complete.
Status keep(WritableDirectory& files, const char* path, const char* half, const char* kept) {
  SHW_CHECK(files.copy_whole_file_in(files.path() + "/" + path, half, nullptr));
  SHW_CHECK(files.rename(half, kept));
  return files.sync();
}

Status back_up_old_files(WritableDirectory& files, const Directory& directory) {
  if (is_there(directory, kUndo)) return {};
  if (is_there(directory, kCertificateFile))
    SHW_CHECK(keep(files, kCertificateFile, kHalfCertificate, kOldCertificate));
  return keep(files, kMetadataFile, kHalf, kUndo);
}

Status write_new_metadata(WritableDirectory& files, const Checkpoint& checkpoint, Outputs outputs) {
  const FormatWriter& writer = *checkpoint.format().writer;
  SHW_TRY(LaidOut laid_out, writer.lay_out(outputs));
  return writer.seal(std::move(outputs), laid_out,
                     [&](const std::string&) { return files.create(kNew); });
}

// Opens the checkpoint with the new metadata.
Result<std::shared_ptr<const Checkpoint>> open_with_new_metadata(const Checkpoint& checkpoint) {
  return open_checkpoint(
      std::make_shared<ReplacedFileDirectory>(checkpoint.directory(), kMetadataFile, kNew));
}

// A pointer without ownership: the caller's checkpoint outlives it.
std::shared_ptr<const Checkpoint> non_owning_checkpoint(const Checkpoint& checkpoint) {
  return {std::shared_ptr<void>(), &checkpoint};
}

Result<Certificate> write_and_prove(WritableDirectory& files, const Checkpoint& checkpoint,
                                    const Plan& plan, const std::string& told, Progress* progress) {
  SHW_TRY(const TargetOfPlan target,
          target_of_plan(non_owning_checkpoint(checkpoint), plan, progress));
  TargetRun run = target_run_of(plan, target);
  run.form.out = files.path();
  run.plan = told;
  SHW_TRY(Outputs outputs, outputs_in_place(target.all, run.form, progress));
  SHW_CHECK(write_new_metadata(files, checkpoint, outputs));
  SHW_TRY(auto result, open_with_new_metadata(checkpoint));
  return certify_in_place(target.all, run, outputs, *result, files, progress);
}

// Gives new files, which replace or describe .metadata, no wider permissions than it has.
Status limit_new_files(const Store& store, const WritableDirectory& files) {
  if (&store != &posix_store()) return {};
  const PermissionLimit most = permission_limit_of({}, {files.path() + "/" + kMetadataFile});
  for (const char* path : {kNew, kNewCertificate, in_place::kRequest})
    SHW_CHECK(limit_file_permissions(files.path() + "/" + path, most));
  return {};
}

// Steps 0 to 3 of the list at the top: writes all files under names of ours and changes nothing
// yet.
Result<Certificate> prepare(const Store& store, WritableDirectory& files,
                            const Checkpoint& checkpoint, const Plan& plan, Progress* progress) {
  const Directory& directory = *checkpoint.directory();
  SHW_TRY(Bytes old_metadata, contents(directory, kMetadataFile));
  SHW_TRY(auto now, open_checkpoint(checkpoint.directory()));
  if (fingerprint(*now) != fingerprint(checkpoint))
    return fail(ErrorKind::kIo, "changed since the plan was made", {kMetadataFile},
                "make a new plan");
  const std::string told = encode_stored_plan(plan_text(checkpoint, plan, -1));
  SHW_TRY(std::string request, request_to_json(store, "repair", told, directory.name()));
  SHW_CHECK(write_text(files, in_place::kHalfRequest, request));
  SHW_CHECK(files.rename(in_place::kHalfRequest, in_place::kRequest));
  SHW_CHECK(back_up_old_files(files, directory));
  SHW_TRY(Bytes kept, contents(directory, kUndo));
  if (kept != old_metadata)
    return fail(ErrorKind::kIo, "changed while it was being repaired", {kMetadataFile});
  SHW_TRY(Certificate certificate, write_and_prove(files, checkpoint, plan, told, progress));
  SHW_CHECK(write_text(files, kNewCertificate, certificate_to_json(certificate)));
  SHW_CHECK(limit_new_files(store, files));
  SHW_CHECK(files.sync());
  if (is_cancelled(progress)) return cancelled_error();
  return certificate;
}

// Steps 4 and 5 of the list at the top: renames the new files to their final names.
Status swap(WritableDirectory& files) {
  SHW_CHECK(files.rename(kNew, kMetadataFile));
  SHW_CHECK(files.sync());
  SHW_CHECK(files.rename(kNewCertificate, kCertificateFile));
  return files.sync();
}

// Whether the repair's certificate at `path` lists the current .metadata; nullopt if the
// certificate cannot tell.
std::optional<bool> certifies_metadata(const Directory& directory, const char* path) {
  auto certificate = in_place::certificate_in(directory, path);
  if (!certificate || certificate->seal != Certificate::Seal::kIntact) return std::nullopt;
  for (const FileCertificate& file : certificate->files) {
    if (file.path != kMetadataFile) continue;
    auto now = directory.open(kMetadataFile);
    if (!now || (*now)->size() != file.size) return false;
    const ByteRange all{0, (*now)->size()};
    auto hash = hash_ranges(**now, std::span(&all, 1), nullptr);
    return hash && *hash == file.rest;
  }
  return std::nullopt;
}

// Refuses to undo if another program has saved new metadata since the repair.
Status check_metadata_is_ours(const Directory& directory) {
  auto kept = contents(directory, kUndo), now = contents(directory, kMetadataFile);
  if (!kept || !now || *kept == *now) return {};
  std::optional<bool> ours = certifies_metadata(directory, kNewCertificate);
  // An interrupted undo has already restored the old certificate.
  auto old = contents(directory, kOldCertificate), last = contents(directory, kCertificateFile);
  if (!ours && !(old && last && *old == *last))
    ours = certifies_metadata(directory, kCertificateFile);
  if (ours.value_or(true)) return {};
  return fail(ErrorKind::kUsage, "was changed since the repair: undo would lose that change",
              {kMetadataFile},
              "`commit` keeps the current state; to undo anyway, rename " + std::string(kUndo) +
                  " to it yourself");
}

// Checks that the metadata to be restored can still be opened.
Status check_backup_opens(std::shared_ptr<const Directory> directory) {
  if (!is_there(*directory, kUndo)) return {};
  auto kept = open_checkpoint(
      std::make_shared<ReplacedFileDirectory>(std::move(directory), kMetadataFile, kUndo));
  if (kept) return {};
  return fail(ErrorKind::kDamaged, "was changed since it was kept: " + kept.error().message,
              {kUndo}, "`commit` keeps the current state");
}

tl::unexpected<Error> add_cleanup_failure(Error error, const Status& cleanup) {
  if (!cleanup) {
    error.advice = "run `shardwright undo`: the partial result could not be removed (" +
                   cleanup.error().message + ")";
  }
  return tl::unexpected<Error>(std::move(error));
}

constexpr const char* kIntoNewFolder = "repair into a new directory instead";

// lost.json lists filled elements by name and box, and is not rewritten in place.
Status check_not_filled(const TargetState& all) {
  std::set<std::string_view> as_they_were;
  for (const TargetEntry& entry : all.tensors) {
    if (entry.made == nullptr) as_they_were.insert(entry.fqn);
  }
  for (const auto& [fqn, loss] : all.losses) {
    if (as_they_were.contains(fqn)) continue;
    return cannot_make_target(
        fqn, "an earlier repair filled some of its elements, so it is not changed in place",
        kIntoNewFolder);
  }
  return {};
}

Status check_moves_nothing(const Checkpoint& checkpoint, const Plan& plan) {
  SHW_TRY(const TargetOfPlan target,
          target_of_plan(non_owning_checkpoint(checkpoint), plan, nullptr));
  SHW_CHECK(check_not_filled(target.all));
  auto outputs = outputs_in_place(target.all, target.form, nullptr);
  return outputs ? Status{} : Status(tl::unexpected<Error>(std::move(outputs).error()));
}

// Names the first step after which a byte would have to move.
Status check_steps_in_place(const Checkpoint& checkpoint, const Plan& plan) {
  if (!plan.format.empty() && plan.format != checkpoint.format().name) {
    return fail(ErrorKind::kUnsupported,
                "a repair in place keeps the format, but the plan wants " + plan.format, {},
                kIntoNewFolder);
  }
  Status whole = check_moves_nothing(checkpoint, plan);
  if (whole) return whole;
  Plan begun = plan;
  begun.steps.clear();
  for (const Step& step : plan.steps) {
    begun.steps.push_back(step);
    Status moved = check_moves_nothing(checkpoint, begun);
    if (moved) continue;
    Error error = std::move(moved).error();
    error.message =
        fmt::format("step {} ({}) cannot be done in place: {}",
                    plan.operations.size() + begun.steps.size(), name(step), error.message);
    if (error.advice.empty()) error.advice = kIntoNewFolder;
    return tl::unexpected<Error>(std::move(error));
  }
  return whole;
}

}  // namespace

Status check_in_place(const Checkpoint& checkpoint, const Plan& plan) {
  if (checkpoint.directory() != nullptr && is_remote(checkpoint.directory()->name()))
    return fail(ErrorKind::kUnsupported,
                "a checkpoint on another machine cannot be repaired in place", {},
                "repair into a new directory instead");
  const Format& format = checkpoint.format();
  if (!format.traits.one_index_file || format.rewrite != Rewrite::kIndex) {
    return fail(ErrorKind::kUnsupported,
                "only a checkpoint with a single .metadata can be repaired in place", {},
                "repair into a new directory instead");
  }
  if (checkpoint.directory() != nullptr && is_there(*checkpoint.directory(), kIntegrityFile)) {
    return fail(ErrorKind::kUnsupported,
                "lists the hash of .metadata, which the repair would change", {kIntegrityFile},
                "repair into a new directory, with --integrity");
  }
  if (plan.transforms()) return check_steps_in_place(checkpoint, plan);
  FilledReport earlier = filled_report_of(checkpoint);
  for (const PlannedTensor& tensor : plan.tensors) {
    // lost.json lists the tensor as it is now, and is not rewritten in place.
    if (earlier.find(checkpoint.fqn(tensor.tensor)) != nullptr) {
      return fail(
          ErrorKind::kUnsupported,
          "an earlier repair filled some of its elements, so it cannot be repaired in place",
          Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor.tensor))},
          "repair into a new directory instead");
    }
    if (is_pure_relabel(tensor)) continue;
    if (tensor.lost_elements != 0) {
      return fail(
          ErrorKind::kUnsupported,
          "lost elements have to be filled, which writes data, so it cannot be repaired in place",
          Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor.tensor))},
          "repair into a new directory instead");
    }
    return fail(ErrorKind::kUnsupported,
                "tensor bytes have to move, so it cannot be repaired in place",
                Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor.tensor))},
                "repair into a new directory instead");
  }
  return {};
}

Result<RepairResult> repair_in_place(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                     Progress* progress) {
  SHW_CHECK(check_in_place(checkpoint, plan));
  const Directory& directory = *checkpoint.directory();
  SHW_TRY(auto files, store.edit_folder(directory.name()));
  if (progress != nullptr) progress->begin(Phase::kWritingMetadata, 0, false);
  SHW_CHECK(claim_checkpoint(store, *files, directory));
  if (auto cleared = clear_leftovers(*files, directory); !cleared) {
    static_cast<void>(files->remove(kOwnerFile));
    return tl::unexpected<Error>(std::move(cleared).error());
  }
  auto certificate = prepare(store, *files, checkpoint, plan, progress);
  if (!certificate)
    return add_cleanup_failure(certificate.error(), in_place::abandon_repair(*files, directory));
  if (auto swapped = swap(*files); !swapped)
    return add_cleanup_failure(swapped.error(), in_place::roll_back(store, directory.name()));
  // The repair is done, so leftover work files are harmless.
  static_cast<void>(in_place::remove_work(*files, directory));
  static_cast<void>(files->sync());
  RepairResult told{directory.name(), directory.name() + "/" + kCertificateFile,
                    certificate->lossless};
  told.damage = damage_by_fqn(*certificate);
  told.of_other_ranks = std::move(certificate->of_other_ranks);
  return told;
}

Status undo_repair(const std::string& checkpoint_path) {
  return undo_repair(posix_store(), checkpoint_path);
}

Status undo_repair(Store& store, const std::string& checkpoint_path) {
  SHW_TRY(const FolderLock lock, FolderLock::take(checkpoint_path));
  SHW_TRY(auto directory, store.read_folder(checkpoint_path));
  SHW_CHECK(in_place::check_not_claimed_by_other(store, *directory));
  SHW_CHECK(check_metadata_is_ours(*directory));
  SHW_CHECK(check_backup_opens(directory));
  return in_place::roll_back(store, checkpoint_path);
}

}  // namespace shw
