// Executes, resumes and undoes repairs.
#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/formats/open.h"
#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/session/command_run.h"
#include "core/session/stopped_run.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/resume.h"

namespace shw {
namespace {

// Opens and checks the result like the source.
Result<Change> open_and_check_result(const Snapshot& before, RepairResult made,
                                     Progress* progress) {
  SHW_TRY(auto after, open_checkpoint(made.output, progress));
  std::optional<Depth> depth;
  if (before.report != nullptr) depth = before.report->depth;
  verbs::Opened opened = verb_inputs(before);
  if (before.plan != nullptr && before.plan->transforms()) {
    opened.mesh.reset();  // the source's; the result may have other names and tiles
    opened.spec.reset();
  }
  SHW_TRY(auto wrong, verbs::findings_of_result(opened, made.output, depth, progress));
  std::erase_if(wrong, verbs::is_filled_elements_finding);
  SHW_TRY(auto certificate, verbs::read_certificate_list(made.output));
  bool in_place = made.output == before.options.checkpoint;
  if (before.checkpoint->directory() != nullptr)
    in_place = in_place || made.output == before.checkpoint->directory()->name();
  auto repaired = std::make_shared<const RepairResult>(std::move(made));
  auto left = std::make_shared<const std::vector<Finding>>(std::move(wrong));
  auto list = std::make_shared<const verbs::CertificateList>(std::move(certificate));
  // Files written in place are our own change, so their new state is recorded.
  std::shared_ptr<const verbs::DiskState> disk = before.disk;
  if (in_place)
    disk = std::make_shared<const verbs::DiskState>(verbs::disk_state(*before.checkpoint));
  auto stopped = search_stopped_runs(before);
  return [after, repaired, left, list, in_place, disk, stopped, edits = before.edits](Snapshot& s) {
    s.disk = disk;
    s.stopped = stopped;
    if (in_place) s.changed_on_disk.clear();
    s.executed = nullptr;
    if (edits != nullptr) {
      set_plan_edits(s, edits);
      s.executed = edits->all[edits->now];
    }
    s.repaired = repaired;
    s.certificate = list;
    s.after = after;
    s.result_findings = left;
    s.verified = nullptr;
    s.target = nullptr;
    s.can_undo = in_place;
  };
}

}  // namespace

Result<Change> run_repair(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.plan == nullptr) return no_plan_error();
  const std::string& shown = as<RepairCommand>(command).plan;
  if (!shown.empty() && (before.edits == nullptr || before.edits->edit().hash != shown))
    return fail(ErrorKind::kUsage, "the plan has changed since it was shown: nothing was written",
                {}, "review the new plan, then apply it");
  if (before.plan->transforms())
    SHW_CHECK(verbs::refuse_damaged_checkpoint(verbs::unrepaired_reasons_in(*before.plan),
                                               before.options.checkpoint));
  ApplyOptions options = as<RepairCommand>(command).options;
  options.checkpoint = before.options.checkpoint;
  options.out = verbs::expanded_path(options.out);
  options.suffix = suffix_of(before);
  options.device.gpus = before.gpus;
  SHW_TRY(RepairResult made, verbs::repair(verb_inputs(before), *before.plan, options, progress));
  return open_and_check_result(before, std::move(made), progress);
}

namespace {

// The unfinished run that `folder` names, or that becomes it, with its plan.
std::optional<verbs::StoppedRun> find_stopped_run(const Snapshot& snapshot,
                                                  const std::string& folder) {
  const std::string whole = posix_store().resolved(folder).value_or(folder);
  verbs::StoppedRuns found = verbs::find_stopped_runs(
      posix_store(), *snapshot.checkpoint, snapshot.options.checkpoint, {whole}, SIZE_MAX);
  // The run of another checkpoint is found by its folder alone.
  verbs::StoppedRuns around = verbs::find_stopped_runs_in(posix_store(), parent_of(whole));
  std::move(around.runs.begin(), around.runs.end(), std::back_inserter(found.runs));
  for (verbs::StoppedRun& run : found.runs) {
    for (const std::string& name : {folder, whole}) {
      if (run.folder == name || run.output == name) return std::move(run);
    }
  }
  return std::nullopt;
}

// The snapshot with the plan that the run carries out; without a plan if that is unknown.
Result<Snapshot> snapshot_with_plan_of_run(const Snapshot& snapshot, const verbs::StoppedRun* run) {
  Snapshot planned = snapshot;
  planned.plan = nullptr;
  planned.edits = nullptr;
  if (run == nullptr || run->plan == nullptr) return planned;
  SHW_TRY(PlanEdit edit, make_edit(verb_inputs(snapshot), nullptr, run->plan,
                                   DisabledSteps(run->plan->operations.size(), false), "resumed"));
  edit.fill = run->fill;
  set_plan_edits(planned, with_edit(nullptr, std::move(edit)));
  return planned;
}

}  // namespace

Result<Change> run_resume(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  std::string folder = verbs::expanded_path(as<ResumeCommand>(command).folder);
  const std::optional<verbs::StoppedRun> run = find_stopped_run(before, folder);
  if (run && !run->is_of_open && !run->checkpoint.empty())
    return fail(ErrorKind::kUsage, "is made of another checkpoint: " + run->checkpoint, {folder},
                "open that one, and resume there");
  SHW_TRY(const Snapshot planned, snapshot_with_plan_of_run(before, run ? &*run : nullptr));
  verbs::ResumeLimits limits;
  limits.device.gpus = before.gpus;
  SHW_TRY(verbs::ResumeResult resumed, verbs::resume(posix_store(), folder, limits, progress));
  // The open checkpoint was read before its files were repaired.
  if (run && run->in_place) return open_and_check_again(before, before.options.depth, progress);
  return open_and_check_result(planned, std::move(resumed.result), progress);
}

Result<Change> run_roll_back(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr && before.run == nullptr)
    return fail(ErrorKind::kUsage, "nothing is open");
  std::string folder = verbs::expanded_path(as<RollBackCommand>(command).folder);
  SHW_TRY(auto taken, verbs::roll_back(posix_store(), folder));
  if (before.checkpoint == nullptr) {
    auto stopped = std::make_shared<const verbs::StoppedRuns>(
        verbs::find_stopped_runs_in(posix_store(), before.options.checkpoint));
    return [stopped](Snapshot& s) { s.stopped = stopped; };
  }
  if (folder == before.options.checkpoint)
    return open_and_check_again(before, before.options.depth, progress);
  return [stopped = search_stopped_runs(before)](Snapshot& s) { s.stopped = stopped; };
}

Result<Change> open_and_check_again(const Snapshot& before, std::optional<Depth> depth,
                                    Progress* progress) {
  SHW_TRY(Change opened,
          run_open(before, reopen_command(before, before.options.checkpoint), progress));
  Snapshot after = blank(before);
  opened(after);
  if (before.tensor) after.tensor = after.checkpoint->find(before.checkpoint->fqn(*before.tensor));
  Change checked = [](Snapshot&) {};
  if (before.report != nullptr) {
    SHW_TRY(checked, run_check(after, CheckCommand{depth}, progress));
  }
  return [opened, checked, tensor = after.tensor](Snapshot& s) {
    opened(s);
    s.tensor = tensor;
    checked(s);
  };
}

// The restored checkpoint is opened and checked.
Result<Change> run_undo(const Snapshot& before, const Command&, Progress* progress) {
  SHW_CHECK(verbs::undo(before.options.checkpoint));
  return open_and_check_again(before, before.options.depth, progress);
}

Result<Change> run_commit(const Snapshot& before, const Command&, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  SHW_CHECK(verbs::commit(posix_store(), before.options.checkpoint));
  return [](Snapshot& s) { s.can_undo = false; };
}

}  // namespace shw
