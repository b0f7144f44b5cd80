// Actions of repair and comparison.
#include <array>

#include "views/action_rows.h"
#include "views/panels/plan_parts.h"
#include "views/stopped_run_text.h"

namespace shw {
namespace {

// True if no job runs that writes or changes the open checkpoint.
bool is_idle(const Frame& frame) {
  return !frame.job.running;
}
bool is_to_be_repaired(const Frame& frame) {
  const Snapshot& s = frame.snapshot;
  return s.plan != nullptr && s.edits != nullptr && !s.plan->empty() && !is_plan_executed(s);
}

bool can_review(const Frame& frame, const UiState& state) {
  return has_findings(frame, state) && !is_plan_executed(frame.snapshot);
}
void open_plan_panel(Frame& frame, UiState& state) {
  if (frame.snapshot.plan == nullptr || is_rewrite_only_plan(frame.snapshot))
    frame.emit(PlanCommand{});
  state.plan_open = true;
}

// Outside the panel the action only opens it.
bool can_apply(const Frame& frame, const UiState& state) {
  return is_to_be_repaired(frame) && is_idle(frame) &&
         (!state.plan_open || why_not_applied(frame, state).empty());
}
// Applying in place also requires that no job reads the checkpoint.
bool can_apply_in_place(const Frame& frame, const UiState& state) {
  return is_to_be_repaired(frame) && !frame.anything_runs() && !frame.snapshot.not_in_place &&
         !has_unused_plan_input(frame, state);
}
bool can_dry_run(const Frame& frame, const UiState& /*state*/) {
  return is_to_be_repaired(frame) && is_idle(frame) && !frame.runs("dry-run");
}
// Writes the plan that is shown, into the folder that is shown.
void apply_repair(Frame& frame, UiState& state, bool in_place) {
  RepairCommand repair;
  repair.plan = frame.snapshot.edits->edit().hash;
  repair.options.in_place = in_place;
  if (!in_place) repair.options.out = examined_target(frame, state)->path;
  parse_device(state.plan.device, repair.options.device);
  frame.emit(std::move(repair));
  frame.emit(VerifyCommand{});
  state.plan_open = false;
}

// Asks where the disk shows too little room: the engine counts again before it writes, without
// blocks that are shared with the source and without zeros.
std::string question_before_applying(const Frame& frame) {
  const auto& target = frame.snapshot.target;
  if (target == nullptr || fits_on_disk(*target)) return {};
  return target->path + " takes " + written_text(*target) + ", and " + human_bytes(*target->free) +
         " are free there. It can only be written if the disk shares blocks with the checkpoint, "
         "or if what is filled is zeros.";
}

bool can_undo_edit(const Frame& frame, const UiState& /*state*/) {
  const Snapshot& s = frame.snapshot;
  return s.edits != nullptr && s.edits->can_undo() && !is_plan_executed(s);
}
bool can_redo_edit(const Frame& frame, const UiState& /*state*/) {
  const Snapshot& s = frame.snapshot;
  return s.edits != nullptr && s.edits->can_redo() && !is_plan_executed(s);
}

// The finished files of a run stay where another process may use them.
bool can_discard(const Frame& frame, const UiState& /*state*/) {
  const verbs::StoppedRun* run = first_stopped_run(frame.snapshot);
  return run != nullptr && !run->in_use && is_idle(frame) &&
         (!run->in_place || !frame.anything_runs());
}
bool can_resume(const Frame& frame, const UiState& state) {
  const verbs::StoppedRun* run = first_stopped_run(frame.snapshot);
  return can_discard(frame, state) && run->is_of_open && !run->not_resumable;
}
void resume(Frame& frame, UiState& state) {
  frame.emit(ResumeCommand{first_stopped_run(frame.snapshot)->folder});
  if (!first_stopped_run(frame.snapshot)->in_place) frame.emit(VerifyCommand{});
  state.plan_open = false;
}
void discard(Frame& frame, UiState& /*state*/) {
  frame.emit(RollBackCommand{first_stopped_run(frame.snapshot)->folder});
}
template <std::string (*kText)(const verbs::StoppedRun&)>
std::string question_about_stopped_run(const Frame& frame) {
  const verbs::StoppedRun* run = first_stopped_run(frame.snapshot);
  return run == nullptr ? std::string() : kText(*run);
}

bool can_open_repaired(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.repaired != nullptr && is_idle(frame);
}
void open_repaired(Frame& frame, UiState& state) {
  state.filter.clear();
  frame.emit(FilterCommand{});
  frame.emit(reopen_command(frame.snapshot, frame.snapshot.repaired->output));
  frame.emit(CheckCommand{});
}
bool can_verify(const Frame& frame, const UiState& state) {
  return can_open_repaired(frame, state) && !frame.runs("verify");
}
bool can_undo_repair(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.can_undo && !frame.anything_runs();
}
bool has_certificate(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.certificate != nullptr;
}

bool compare_is_visible(const UiState& state) {
  return state.compare_open && (!state.right_rail || state.layout.right.peeked);
}

// Shows the comparison instead of the findings, and opens their column if collapsed; or closes it.
void toggle_compare(Frame& frame, UiState& state) {
  const bool opens = !compare_is_visible(state);
  state.compare_open = state.compare_wanted = opens;
  if (!opens) return;
  if (state.right_rail && !state.layout.right.peeked) toggle(state.layout.right, true);
  if (state.compare_path.empty()) state.compare_path = frame.snapshot.options.against;
}

bool has_differences(const Frame& frame, const UiState& /*state*/) {
  const auto& compared = frame.snapshot.compared;
  return compared != nullptr && !compared->difference.tensors.empty();
}
void step_difference(Frame& frame, UiState& state, int direction) {
  std::size_t count = frame.snapshot.compared->difference.tensors.size();
  std::size_t now = frame.snapshot.difference.value_or(direction > 0 ? count - 1 : 0);
  state.compare_open = true;
  frame.emit(DifferenceCommand{(now + (direction > 0 ? 1 : count - 1)) % count});
}

constexpr std::array kRepairRows{
    ActionRow{Action::kReview, "Review the repair", ctrl(Key::kR), can_review, open_plan_panel,
              OverlayPolicy::kReplaces},
    ActionRow{Action::kApply, "Write the result into a new folder", ctrl(Key::kEnter), can_apply,
              [](Frame& frame, UiState& state) { apply_repair(frame, state, false); },
              OverlayPolicy::kNeedsRepairPanel, question_before_applying},
    ActionRow{Action::kApplyInPlace,
              "Apply the repair in place",
              {},
              can_apply_in_place,
              [](Frame& frame, UiState& state) { apply_repair(frame, state, true); },
              OverlayPolicy::kNeedsRepairPanel},
    ActionRow{Action::kDryRun, "Estimate the repair: bytes, memory, time", ctrl(Key::kD),
              can_dry_run, emit_one<DryRunCommand>, OverlayPolicy::kRepairPanelOnly},
    ActionRow{Action::kPlanUndo, "Undo the last edit of the plan", ctrl(Key::kZ), can_undo_edit,
              emit_one<PlanUndoCommand>, OverlayPolicy::kRepairPanelOnly},
    ActionRow{Action::kPlanRedo, "Redo the edit of the plan", ctrl(Key::kY), can_redo_edit,
              emit_one<PlanRedoCommand>, OverlayPolicy::kRepairPanelOnly},
    ActionRow{Action::kResume,
              "Resume the stopped repair",
              {},
              can_resume,
              resume,
              OverlayPolicy::kRepairPanelOnly,
              question_about_stopped_run<resume_question>},
    ActionRow{Action::kRollBack,
              "Discard the stopped repair",
              {},
              can_discard,
              discard,
              OverlayPolicy::kRepairPanelOnly,
              question_about_stopped_run<discard_question>},
    ActionRow{Action::kCommit,
              "Keep the repair in place for good",
              {},
              can_undo_repair,
              emit_one<CommitCommand>,
              OverlayPolicy::kBlocked,
              [](const Frame&) -> std::string {
                return "The metadata of before the repair is deleted, so that the repair can no "
                       "longer be undone.";
              }},
    ActionRow{Action::kCertificate,
              "Show the certificate",
              {Key::kF7},
              has_certificate,
              [](Frame&, UiState& state) { state.certificate_open = true; },
              OverlayPolicy::kReplaces},
    ActionRow{Action::kCompare, "Compare with another checkpoint", ctrl(Key::kK), has_checkpoint,
              toggle_compare},
    ActionRow{Action::kNextDifference, "Go to the next difference", ctrl(Key::kF8), has_differences,
              [](Frame& frame, UiState& state) { step_difference(frame, state, 1); }},
    ActionRow{Action::kPreviousDifference, "Go to the previous difference", ctrl_shift(Key::kF8),
              has_differences,
              [](Frame& frame, UiState& state) { step_difference(frame, state, -1); }},
    ActionRow{Action::kVerify, "Verify the result", {}, can_verify, emit_one<VerifyCommand>},
    ActionRow{Action::kOpenRepaired, "Open the result", {}, can_open_repaired, open_repaired},
    // Checks the restored checkpoint again.
    ActionRow{Action::kUndo,
              "Undo a repair in place",
              {},
              can_undo_repair,
              emit_one<UndoCommand>,
              OverlayPolicy::kBlocked,
              [](const Frame&) -> std::string {
                return "The checkpoint gets the metadata back that it had before the repair, byte "
                       "for byte.";
              }},
};

}  // namespace

std::span<const ActionRow> repair_actions() {
  return kRepairRows;
}

}  // namespace shw
