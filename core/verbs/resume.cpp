#include "core/verbs/resume.h"

#include <algorithm>
#include <optional>

#include "core/exec/partial_folder.h"
#include "core/facts/storage/filled.h"
#include "core/io/owner.h"
#include "core/io/path_text.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/repair/run/request.h"
#include "core/verbs/computed_path.h"

namespace shw::verbs {
namespace {

Result<RepairResult> resume_repair(ResumeRequest order, Progress* progress) {
  SHW_TRY(RepairRequest request, request_from_json(order.request, "repair", order.partial));
  order.request = {};
  std::string path = as_typed(order.store, request.said, request.checkpoint);
  SHW_TRY(auto checkpoint, open_requested(path, progress));
  SHW_TRY(Plan plan, plan_from_json(*checkpoint, request.plan, order.partial));
  request.plan = {};
  ApplyOptions options;
  options.out = order.out;
  options.checkpoint = path;
  options.partial = order.partial;
  options.memory = order.memory;
  options.device = order.device;
  options.team = order.team;
  options.integrity = request.integrity;
  return apply_plan(order.store, *checkpoint, plan, options, progress);
}

// Verbs that create a folder.
constexpr ResumeRow kRows[] = {{"repair", resume_repair}};

tl::unexpected<Error> nothing_to_resume(const std::string& folder) {
  return fail(ErrorKind::kUsage, "no interrupted run was found there", {folder},
              "give the output folder of that run, or the checkpoint that was repaired in place");
}

// Journal errors name files relative to the folder: adds its path.
Error in_folder(Error error, const std::string& folder) {
  if (error.place.file == kJournalFile) error.place.file = folder + "/" + kJournalFile;
  return error;
}

bool is_partial(const std::string& path) {
  return path.substr(path.rfind('/') + 1).find(kPartialMark) != std::string::npos;
}

// The unfinished folders that `folder` may refer to.
std::vector<std::string> unfinished_folders(const Store& store, const std::string& folder) {
  if (is_partial(folder))
    return store.exists(folder) ? std::vector{folder} : std::vector<std::string>{};
  return partial_folders(store, folder);
}

struct UnfinishedRepair {
  std::string partial;
  JournalText journal;
};

// The unfinished run with the most progress; otherwise the reason why none can be resumed.
Result<UnfinishedRepair> find_most_advanced_run(const Store& store, const std::string& folder) {
  std::optional<UnfinishedRepair> best;
  std::optional<Error> why;
  for (const std::string& partial : unfinished_folders(store, folder)) {
    Status free = check_is_own_partial(store, partial);
    if (free) free = check_not_in_progress(store, partial);
    auto opened = store.read_folder(partial);
    if (free && opened && (*opened)->stat(kJournalFile).kind == EntryKind::kMissing)
      free = fail(ErrorKind::kUsage, "was killed before it wrote anything", {partial},
                  "remove it with `resume --roll-back`");
    auto journal = opened ? read_journal(**opened)
                          : Result<JournalText>(tl::unexpected<Error>(opened.error()));
    if (!free || !journal) {
      if (!why) why = !free ? free.error() : in_folder(journal.error(), partial);
      continue;
    }
    if (!best || journal->files.size() > best->journal.files.size())
      best = UnfinishedRepair{partial, std::move(*journal)};
  }
  if (best) return std::move(*best);
  if (why) return tl::unexpected<Error>(std::move(*why));
  return nothing_to_resume(folder);
}

// The output path by the folder's present place; spelled as originally if it is the same place, so
// that results are byte-identical.
Result<std::string> output_of_partial(const Store& store, const UnfinishedRepair& begun) {
  SHW_TRY(std::string out, store.resolved(final_name_of_partial(begun.partial)));
  if (!store.is_free_for_folder(out))
    return fail(ErrorKind::kUsage, "already exists, and is never replaced", {out},
                "remove the unfinished result with `resume --roll-back " + begun.partial + "`");
  return as_typed(store, begun.journal.header.out, out);
}

Result<RepairResult> resume_repair_in_place(Store& store, UnfinishedRepair begun,
                                            const ResumeLimits& limits, Progress* progress) {
  JournalHeader& header = begun.journal.header;
  SHW_TRY(std::string out, output_of_partial(store, begun));
  if (auto changed = first_changed_input(store, header)) {
    return fail(ErrorKind::kDamaged,
                "has changed since the run began, so the partial result is outdated", {*changed},
                "remove it with `resume --roll-back`, and start from scratch");
  }
  std::string verb = verb_of_request(header.request);
  for (const ResumeRow& row : kRows) {
    if (verb != row.verb) continue;
    auto result = row.run({store, std::move(header.request), begun.partial, out, limits.memory,
                           limits.device, limits.team},
                          progress);
    if (result) return result;
    return tl::unexpected<Error>(in_folder(std::move(result).error(), begun.partial));
  }
  return fail(ErrorKind::kUnsupported, "was started by a command that this version does not know",
              {begun.partial + "/" + kJournalFile});
}

// Handles an existing folder: a repair in place, or a finished result.
Result<ResumeResult> resume_existing_folder(Store& store, const std::string& folder,
                                            Progress* progress) {
  SHW_TRY(auto directory, store.read_folder(folder));
  SHW_TRY(InPlace state, in_place_state(*directory));
  if (state == InPlace::kBegun || state == InPlace::kReplaced) {
    SHW_TRY(RepairResult result, resume_in_place(store, folder, progress));
    return ResumeResult{std::move(result)};
  }
  if (directory->stat(kCertificateFile).kind != EntryKind::kFile) return nothing_to_resume(folder);
  SHW_CHECK(check_not_in_progress(store, folder));
  SHW_TRY(auto files, store.edit_folder(folder));
  // Killed after the rename: only the cleanup is left.
  for (const char* path : {kOwnerFile, kJournalFile}) {
    if (directory->stat(path).kind == EntryKind::kFile) SHW_CHECK(files->remove(path));
  }
  SHW_TRY(RepairResult result, read_finished_repair(*directory));
  return ResumeResult{std::move(result), true};
}

}  // namespace

Status check_not_in_progress(const Store& store, const std::string& partial) {
  switch (owner_state(store, partial)) {
    case OwnerState::kNobody:
    case OwnerState::kDeadProcess:
      return {};
    case OwnerState::kLiveProcess:
      return fail(ErrorKind::kUsage, "is being written by a running process", {partial});
    case OwnerState::kUnknown:
      break;
  }
  return fail(ErrorKind::kUsage,
              "belongs to a process of another machine, or from before this machine was rebooted",
              {partial},
              "make sure that it no longer runs, remove " + partial + "/" + kOwnerFile +
                  ", and run this again");
}

Result<ResumeResult> resume(Store& store, const std::string& folder, const ResumeLimits& limits,
                            Progress* progress) {
  std::string path = without_trailing_slashes(folder);
  if (!is_partial(path) && !store.is_free_for_folder(path)) {
    if (limits.team != nullptr)
      return fail(ErrorKind::kUsage,
                  "nothing is left to distribute: the result is already complete", {path},
                  "do it in one process");
    return resume_existing_folder(store, path, progress);
  }
  SHW_TRY(UnfinishedRepair begun, find_most_advanced_run(store, path));
  SHW_TRY(RepairResult result, resume_repair_in_place(store, std::move(begun), limits, progress));
  return ResumeResult{std::move(result)};
}

Result<std::vector<std::string>> roll_back(Store& store, const std::string& folder) {
  std::string path = without_trailing_slashes(folder);
  std::vector<std::string> partials = unfinished_folders(store, path);
  for (const std::string& partial : partials) {
    SHW_CHECK(check_not_in_progress(store, partial));
    SHW_CHECK(store.discard(partial, kPartialMark));
  }
  if (!partials.empty()) return partials;
  if (!store.exists(path)) return nothing_to_resume(path);
  SHW_CHECK(roll_back_in_place(store, path));
  return std::vector{path};
}

Status commit(Store& store, const std::string& checkpoint) {
  return commit_repair(store, without_trailing_slashes(checkpoint));
}

}  // namespace shw::verbs
