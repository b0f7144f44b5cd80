// Executes, resumes and undoes repairs.
#include "core/formats/open.h"
#include "core/io/store.h"
#include "core/session/command_run.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/resume.h"

namespace shw {
namespace {

// Opens and checks the result like the source.
Result<Change> open_result(const Snapshot& before, RepairResult made, Progress* progress) {
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
  SHW_TRY(auto certificate, verbs::certificate_of(made.output));
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
  return [after, repaired, left, list, in_place, disk, edits = before.edits](Snapshot& s) {
    s.disk = disk;
    if (in_place) s.changed_on_disk.clear();
    s.executed = nullptr;
    if (edits != nullptr) {
      set_plan_edits(s, edits);
      s.executed = edits->all[edits->now];
    }
    s.repaired = repaired;
    s.certificate = list;
    s.after = after;
    s.still_wrong = left;
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
    SHW_CHECK(verbs::refuse_broken(verbs::unrepaired_reasons_in(*before.plan),
                                   before.options.checkpoint));
  ApplyOptions options = as<RepairCommand>(command).options;
  options.checkpoint = before.options.checkpoint;
  options.out = verbs::expanded_path(options.out);
  options.suffix = suffix_of(before);
  options.device.gpus = before.gpus;
  SHW_TRY(RepairResult made, verbs::repair(verb_inputs(before), *before.plan, options, progress));
  return open_result(before, std::move(made), progress);
}

Result<Change> run_resume(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  std::string folder = verbs::expanded_path(as<ResumeCommand>(command).folder);
  verbs::ResumeLimits limits;
  limits.device.gpus = before.gpus;
  SHW_TRY(verbs::ResumeResult resumed, verbs::resume(posix_store(), folder, limits, progress));
  return open_result(before, std::move(resumed.result), progress);
}

Result<Change> run_roll_back(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  std::string folder = verbs::expanded_path(as<RollBackCommand>(command).folder);
  SHW_TRY(auto taken, verbs::roll_back(posix_store(), folder));
  std::string said = before.target ? before.target->typed_path : std::string();
  auto target = std::make_shared<const verbs::RepairTarget>(
      verbs::inspect_target(posix_store(), verb_inputs(before), said, suffix_of(before)));
  return [target](Snapshot& s) { s.target = target; };
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
