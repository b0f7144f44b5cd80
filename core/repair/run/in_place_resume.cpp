// Resumes or rolls back a killed in-place repair, and deletes its undo files.
#include <algorithm>
#include <span>

#include "core/exec/journal.h"
#include "core/facts/storage/filled.h"
#include "core/formats/open.h"
#include "core/io/folder_lock.h"
#include "core/io/owner.h"
#include "core/io/read_whole.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/checksum_mismatches.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/in_place.h"
#include "core/repair/run/in_place_files.h"
#include "core/repair/run/request.h"

namespace shw {

namespace in_place {

Result<Bytes> contents(const Directory& directory, const char* path) {
  SHW_TRY(auto source, directory.open(path));
  return read_whole(*source, kMaxIndexFile);
}

Status remove_if_there(WritableDirectory& files, const Directory& directory, const char* path) {
  return is_there(directory, path) ? files.remove(path) : Status{};
}

Status remove_work_files_except_owner(WritableDirectory& files, const Directory& directory) {
  for (const char* path : kAtWork) {
    if (path != std::string_view(kOwnerFile)) SHW_CHECK(remove_if_there(files, directory, path));
  }
  return remove_if_there(files, directory, kJournalFile);
}

Status remove_work(WritableDirectory& files, const Directory& directory) {
  SHW_CHECK(remove_work_files_except_owner(files, directory));
  return remove_if_there(files, directory, kOwnerFile);
}

// Deletes the kept metadata first: without it the other leftovers mean "nothing has changed".
Status abandon_repair(WritableDirectory& files, const Directory& directory) {
  SHW_CHECK(remove_if_there(files, directory, kUndo));
  SHW_CHECK(remove_if_there(files, directory, kOldCertificate));
  SHW_CHECK(remove_work(files, directory));
  return files.sync();
}

Result<Certificate> certificate_in(const Directory& directory, const char* path) {
  SHW_TRY(Bytes bytes, contents(directory, path));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return certificate_from_json(text, path);
}

Status check_not_in_use(const Store& store, const std::string& path) {
  if (owner_state(store, path) != OwnerState::kLiveProcess) return {};
  return fail(ErrorKind::kUsage, "is being repaired by another process", {path});
}

Status check_not_claimed_by_other(const Store& store, const Directory& directory) {
  auto owner = contents(directory, kOwnerFile);
  const std::string own = own_process_identity();
  const auto bytes = std::as_bytes(std::span(own));
  if (owner && std::equal(owner->begin(), owner->end(), bytes.begin(), bytes.end())) return {};
  return check_not_in_use(store, directory.name());
}

Status roll_back(Store& store, const std::string& checkpoint_path) {
  SHW_TRY(auto directory, store.read_folder(checkpoint_path));
  SHW_TRY(auto files, store.edit_folder(checkpoint_path));
  SHW_CHECK(remove_work(*files, *directory));
  if (!is_there(*directory, kUndo)) {
    SHW_CHECK(remove_if_there(*files, *directory, kOldCertificate));
    return fail(ErrorKind::kUsage, "there is no repair in place to undo", {checkpoint_path},
                "only repair --in-place can be undone; for other repairs delete the output folder");
  }
  if (is_there(*directory, kOldCertificate)) {
    // Copied, not moved: an undo that is interrupted here must find the kept certificate again.
    SHW_CHECK(files->copy_whole_file_in(files->path() + "/" + kOldCertificate, kHalfCertificate,
                                        nullptr));
    SHW_CHECK(files->rename(kHalfCertificate, kCertificateFile));
  } else {
    SHW_CHECK(remove_if_there(*files, *directory, kCertificateFile));
  }
  SHW_CHECK(files->sync());
  SHW_CHECK(files->rename(kUndo, kMetadataFile));
  SHW_CHECK(files->sync());
  SHW_CHECK(remove_if_there(*files, *directory, kOldCertificate));
  return files->sync();
}

}  // namespace in_place

namespace {

using Text = std::string_view;

// Finishes a repair that was killed after .metadata was replaced: renames the new certificate.
Result<RepairResult> finish_after_metadata_swap(Store& store, const Directory& directory) {
  SHW_TRY(const FolderLock lock, FolderLock::take(directory.name()));
  SHW_TRY(auto files, store.edit_folder(directory.name()));
  if (in_place::is_there(directory, in_place::kNewCertificate)) {
    SHW_TRY(Certificate certificate,
            in_place::certificate_in(directory, in_place::kNewCertificate));
    if (certificate.seal != Certificate::Seal::kIntact)
      return fail(ErrorKind::kDamaged, "was changed after it was written",
                  {in_place::kNewCertificate}, "undo the repair with `resume --roll-back`");
    SHW_CHECK(files->sync());
    SHW_CHECK(files->rename(in_place::kNewCertificate, kCertificateFile));
    SHW_CHECK(files->sync());
  }
  SHW_CHECK(in_place::remove_work(*files, directory));
  SHW_CHECK(files->sync());
  return read_finished_repair(directory);
}

// Starts the repair again from its request; prepared files are recreated.
Result<RepairResult> restart_from_request(Store& store, std::shared_ptr<const Directory> directory,
                                          Progress* progress) {
  auto read = in_place::contents(*directory, in_place::kRequest);
  if (!read) {
    return fail(ErrorKind::kUsage,
                "a repair was killed here before it changed anything, and its plan is not known",
                {directory->name()},
                "remove its leftovers with `resume --roll-back`, and repair again");
  }
  SHW_TRY(RepairRequest request,
          request_from_json(Text(reinterpret_cast<const char*>(read->data()), read->size()),
                            "repair", in_place::kRequest));
  SHW_TRY(auto checkpoint, open_checkpoint(directory, progress));
  SHW_TRY(Plan plan, plan_from_json(*checkpoint, request.plan, in_place::kRequest));
  return repair_in_place(store, *checkpoint, plan, progress);
}

// Removes a repair that has only begun; returns the state that it found.
Result<InPlace> remove_barely_begun_repair(Store& store, const Directory& directory) {
  SHW_TRY(const FolderLock lock, FolderLock::take(directory.name()));
  SHW_CHECK(in_place::check_not_in_use(store, directory.name()));
  SHW_TRY(InPlace state, in_place_state(directory));
  if (state != InPlace::kBegun) return state;
  SHW_TRY(auto files, store.edit_folder(directory.name()));
  SHW_CHECK(in_place::abandon_repair(*files, directory));
  return state;
}

}  // namespace

Result<InPlace> in_place_state(const Directory& checkpoint) {
  using namespace in_place;
  // A journal means that the whole folder was made by a run and not repaired in place since.
  if (!is_there(checkpoint, kMetadataFile) || is_there(checkpoint, kJournalFile))
    return InPlace::kNothing;
  bool at_work = is_there(checkpoint, kOldCertificate) && !is_there(checkpoint, kUndo);
  for (const char* path : kAtWork) at_work = at_work || is_there(checkpoint, path);
  if (!is_there(checkpoint, kUndo)) return at_work ? InPlace::kBegun : InPlace::kNothing;
  SHW_TRY(Bytes kept, contents(checkpoint, kUndo));
  SHW_TRY(Bytes now, contents(checkpoint, kMetadataFile));
  if (kept == now) return InPlace::kBegun;
  return at_work ? InPlace::kReplaced : InPlace::kDone;
}

Result<RepairResult> resume_in_place(Store& store, const std::string& checkpoint_path,
                                     Progress* progress) {
  SHW_TRY(auto directory, store.read_folder(checkpoint_path));
  SHW_CHECK(in_place::check_not_in_use(store, checkpoint_path));
  SHW_TRY(InPlace state, in_place_state(*directory));
  switch (state) {
    case InPlace::kBegun:
      return restart_from_request(store, directory, progress);
    case InPlace::kReplaced:
      return finish_after_metadata_swap(store, *directory);
    case InPlace::kDone:
      return read_finished_repair(*directory);
    case InPlace::kNothing:
      break;
  }
  return fail(ErrorKind::kUsage, "there is no repair in place to resume", {checkpoint_path});
}

Status roll_back_in_place(Store& store, const std::string& checkpoint_path) {
  SHW_TRY(auto directory, store.read_folder(checkpoint_path));
  SHW_TRY(InPlace state, remove_barely_begun_repair(store, *directory));
  if (state == InPlace::kBegun) return {};
  if (state == InPlace::kReplaced) return undo_repair(store, checkpoint_path);
  return fail(ErrorKind::kUsage, "there is no unfinished repair to roll back", {checkpoint_path},
              state == InPlace::kDone ? "the repair is finished: use `shardwright undo`" : "");
}

Status commit_repair(Store& store, const std::string& checkpoint_path) {
  SHW_TRY(auto directory, store.read_folder(checkpoint_path));
  SHW_TRY(InPlace state, in_place_state(*directory));
  if (state == InPlace::kNothing)
    return fail(ErrorKind::kUsage, "there is no repair in place to commit", {checkpoint_path});
  if (state != InPlace::kDone)
    return fail(ErrorKind::kUsage, "a repair was killed here and is not finished",
                {checkpoint_path}, "finish it with `resume`, or undo it with `resume --roll-back`");
  SHW_TRY(auto files, store.edit_folder(checkpoint_path));
  SHW_CHECK(files->remove(in_place::kUndo));
  SHW_CHECK(files->sync());
  SHW_CHECK(in_place::remove_if_there(*files, *directory, in_place::kOldCertificate));
  return files->sync();
}

Result<RepairResult> read_finished_repair(const Directory& checkpoint) {
  SHW_TRY(Certificate certificate, in_place::certificate_in(checkpoint, kCertificateFile));
  RepairResult result{checkpoint.name(), checkpoint.name() + "/" + kCertificateFile,
                      certificate.lossless};
  result.out_of_range = out_of_range_in(certificate);
  result.damage = damage_by_fqn(certificate);
  result.of_other_ranks = std::move(certificate.of_other_ranks);
  result.left_out = std::move(certificate.left_out);
  return result;
}

}  // namespace shw
