// Commands that edit a plan.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/base/checked.h"
#include "core/exec/partial_folder.h"
#include "core/io/store.h"
#include "core/session/command_run.h"
#include "core/session/stopped_run.h"
#include "core/verbs/plan_file.h"

namespace shw {
namespace {

// An executed plan cannot be edited.
Status check_editable(const Snapshot& snapshot) {
  if (snapshot.edits == nullptr) return no_plan_error();
  if (!is_plan_executed(snapshot)) return {};
  return fail(ErrorKind::kUsage, "the plan was executed: check again to make a new one");
}

}  // namespace

tl::unexpected<Error> no_plan_error() {
  return fail(ErrorKind::kUsage, "no repair is planned: check the checkpoint, then plan a repair");
}

std::string suffix_of(const Snapshot& snapshot) {
  return snapshot.edits == nullptr ? ApplyOptions{}.suffix : snapshot.edits->edit().suffix;
}

// Sets the current plan for all other code.
void set_plan_edits(Snapshot& s, std::shared_ptr<const PlanEdits> edits) {
  const PlanEdit& edit = edits->edit();
  s.plan = edit.plan;
  s.not_in_place = edit.not_in_place;
  s.options.fill = edit.fill;
  s.options.plan = edit.file;
  s.outlook = nullptr;
  s.edits = std::move(edits);
  s.edits_before = nullptr;
}

Result<Change> run_step(const Snapshot& before, const Command& command, Progress*) {
  SHW_CHECK(check_editable(before));
  const auto& c = as<StepCommand>(command);
  const PlanEdit& now = before.edits->edit();
  SHW_TRY(DisabledSteps off, switch_step(*now.whole, now.off, c.step, c.on));
  std::string what = fmt::format("step {} {}: {}", c.step + 1, c.on ? "on" : "off",
                                 now.whole->operations[c.step].text);
  SHW_TRY(PlanEdit edit, make_edit(verb_inputs(before), before.report.get(), now.whole,
                                   std::move(off), std::move(what)));
  edit.fill = now.fill;
  return [edits = with_edit(before.edits.get(), std::move(edit))](Snapshot& s) {
    set_plan_edits(s, edits);
  };
}

namespace {

Result<Change> undo_or_redo_plan_edit(const Snapshot& before, bool back) {
  SHW_CHECK(check_editable(before));
  if (back ? !before.edits->can_undo() : !before.edits->can_redo())
    return fail(ErrorKind::kUsage, back ? "there is nothing to undo" : "nothing was taken back");
  auto edits = std::make_shared<PlanEdits>(*before.edits);
  edits->now = back ? edits->now - 1 : edits->now + 1;
  return [edits = std::shared_ptr<const PlanEdits>(edits)](Snapshot& s) {
    set_plan_edits(s, edits);
    s.error.reset();
  };
}

Result<Change> adopt_plan(const Snapshot& before, Plan plan, std::string what,
                          const std::string& file) {
  auto whole = std::make_shared<const Plan>(std::move(plan));
  DisabledSteps off(whole->operations.size(), false);
  SHW_TRY(PlanEdit edit, make_edit(verb_inputs(before), before.report.get(), std::move(whole),
                                   std::move(off), std::move(what)));
  edit.file = file;
  return [edits = with_edit(before.edits.get(), std::move(edit))](Snapshot& s) {
    set_plan_edits(s, edits);
  };
}

}  // namespace

Result<Change> run_plan_undo(const Snapshot& before, const Command&, Progress*) {
  return undo_or_redo_plan_edit(before, true);
}
Result<Change> run_plan_redo(const Snapshot& before, const Command&, Progress*) {
  return undo_or_redo_plan_edit(before, false);
}

Result<Change> run_edit_plan(const Snapshot& before, const Command& command, Progress*) {
  SHW_CHECK(check_editable(before));
  SHW_TRY(Plan plan, verbs::read_plan_text(verb_inputs(before), as<EditPlanCommand>(command).json));
  return adopt_plan(before, std::move(plan), "edited as text", "");
}

Result<Change> run_load_plan(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  if (is_plan_executed(before)) SHW_CHECK(check_editable(before));
  std::string path = verbs::expanded_path(as<LoadPlanCommand>(command).path);
  SHW_TRY(Plan plan, verbs::read_plan(verb_inputs(before), path));
  return adopt_plan(before, std::move(plan), "loaded from " + path, path);
}

Result<Change> run_write_as(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  const verbs::Opened opened = verb_inputs(before);
  const verbs::OutputForm& wanted = as<WriteAsCommand>(command).wanted;
  SHW_TRY(verbs::WriteAsPlan made, plan_to_write_as(opened, before.options.checkpoint, wanted,
                                                    before.options.depth, progress));
  auto whole = std::make_shared<const Plan>(std::move(made.plan));
  SHW_TRY(PlanEdit edit,
          make_edit(opened, nullptr, std::move(whole), {}, "written in another form"));
  edit.notes = std::move(made.notes);
  edit.suffix = std::move(made.suffix);
  const PlanEdits* earlier = is_plan_executed(before) ? nullptr : before.edits.get();
  return [edits = with_edit(earlier, std::move(edit))](Snapshot& s) {
    set_plan_edits(s, edits);
    s.repaired = nullptr;  // that of an earlier plan
    s.executed = nullptr;
    s.verified = nullptr;
    s.after = nullptr;
    s.result_findings = nullptr;
    s.certificate = nullptr;
    s.target = nullptr;
  };
}

Result<Change> run_save_plan(const Snapshot& before, const Command& command, Progress*) {
  if (before.edits == nullptr) return no_plan_error();
  std::string path = verbs::expanded_path(as<SavePlanCommand>(command).path);
  SHW_CHECK(
      verbs::save_plan(posix_store(), verb_inputs(before), before.options, *before.plan, path));
  return [path, saved = before.edits](Snapshot& s) {
    if (s.edits != saved) return;  // it was edited meanwhile
    s.edits = with_file(*saved, path);
    s.options.plan = path;
  };
}

Result<Change> run_dry_run(const Snapshot& before, const Command&, Progress* progress) {
  if (before.plan == nullptr) return no_plan_error();
  if (progress != nullptr) progress->begin(Phase::kPlanning, 0, false);
  ApplyOptions options;
  options.out = before.target ? before.target->path : std::string();
  options.device.gpus = before.gpus;
  SHW_TRY(RepairEstimate outlook, outlook_of(*before.checkpoint, *before.plan, options));
  auto made = std::make_shared<const RepairEstimate>(std::move(outlook));
  return [made, plan = before.plan](Snapshot& s) {
    if (s.plan != plan) return;
    s.outlook = made;
    if (s.target == nullptr || s.target->plan_of_needs != plan) return;
    auto target = std::make_shared<verbs::RepairTarget>(*s.target);
    target->needs = made->bytes_written;
    target->is_needs_upper_bound = false;
    s.target = target;
  };
}

namespace {

// A dry run of more chunks takes seconds, so it runs only on request.
constexpr std::uint32_t kMaxChunksAtOnce = 200'000;

struct BytesToWrite {
  std::optional<std::uint64_t> bytes = {};  // nullopt: nothing is written
  bool at_most = false;
};

// Every file of the checkpoint, and every tensor of the plan once more: counted without lowering
// the plan.
std::uint64_t most_bytes(const Checkpoint& checkpoint, const Plan& plan) {
  std::optional<std::uint64_t> sum = 0;
  const auto add = [&](std::optional<std::uint64_t> bytes) {
    if (sum) sum = bytes ? checked_add(*sum, *bytes) : std::nullopt;
  };
  for (const FileRow& file : checkpoint.files()) add(file.size);
  for (const PlannedTensor& tensor : plan.tensors) {
    const auto elements = volume(tensor.shape);
    add(elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                               std::uint64_t{size_of(checkpoint.dtype(tensor.tensor))})
                 : std::nullopt);
  }
  return sum.value_or(std::numeric_limits<std::uint64_t>::max());
}

// Bytes that the plan writes, which are the same for every `out`.
BytesToWrite bytes_to_write(const Snapshot& snapshot, const std::string& out) {
  if (snapshot.plan->empty()) return {};
  if (snapshot.edits != nullptr && snapshot.edits->edit().written != nullptr)
    return {snapshot.edits->edit().written->bytes_written};
  const BytesToWrite most{most_bytes(*snapshot.checkpoint, *snapshot.plan), true};
  if (snapshot.checkpoint->chunk_count() > kMaxChunksAtOnce) return most;
  ApplyOptions options;
  options.out = out;
  auto estimate = outlook_of(*snapshot.checkpoint, *snapshot.plan, options);
  return estimate ? BytesToWrite{estimate->bytes_written} : most;
}

// True if an unfinished folder of this output was not searched for yet.
bool has_unlisted_partial_folder(const Snapshot& snapshot, const std::string& output) {
  if (partial_folders(posix_store(), output).empty()) return false;
  if (snapshot.stopped == nullptr) return true;
  const auto& runs = snapshot.stopped->runs;
  const auto& outputs = snapshot.stopped->outputs;
  return std::ranges::find(outputs, output) == outputs.end() &&
         std::ranges::find(runs, output, &verbs::StoppedRun::output) == runs.end();
}

}  // namespace

Result<Change> run_target(const Snapshot& before, const Command& command, Progress*) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  verbs::RepairTarget found = verbs::inspect_target(
      posix_store(), verb_inputs(before), as<TargetCommand>(command).path, suffix_of(before));
  if (before.plan != nullptr && !is_plan_executed(before)) {
    // Counting them lowers the whole plan, and a path is inspected at each typed character.
    const bool is_counted = before.target != nullptr && before.target->plan_of_needs == before.plan;
    if (is_counted || !found.refused) {
      const BytesToWrite counted =
          is_counted ? BytesToWrite{before.target->needs, before.target->is_needs_upper_bound}
                     : bytes_to_write(before, found.path);
      found.needs = counted.bytes;
      found.is_needs_upper_bound = counted.at_most;
      found.plan_of_needs = before.plan;
    }
  }
  std::shared_ptr<const verbs::StoppedRuns> stopped = before.stopped;
  if (has_unlisted_partial_folder(before, found.path))
    stopped = search_stopped_runs(before, found.path);
  auto target = std::make_shared<const verbs::RepairTarget>(std::move(found));
  return [target, stopped](Snapshot& s) {
    s.target = target;
    s.stopped = stopped;
  };
}

}  // namespace shw
