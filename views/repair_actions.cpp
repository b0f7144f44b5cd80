// What a key, a button or the palette does to a repair, and to a comparison.
#include "views/actions.h"

namespace shw {
namespace {

void apply_repair(Frame& frame, DeskState& state, bool in_place) {
  ApplyOptions options;
  options.in_place = in_place;
  if (!in_place) options.out = state.out;
  parse_device(state.plan.device, options.device);
  frame.emit(RepairCommand{options});
  frame.emit(VerifyCommand{});
  state.plan_open = false;
}

bool compare_is_seen(const DeskState& state) {
  return state.compare_open && (!state.right_rail || state.layout.right.peeked);
}

// It has the place of the findings: where that is a rail it opens.
void show_compare(DeskState& state, bool open) {
  state.compare_open = state.compare_wanted = open;
  if (open && state.right_rail && !state.layout.right.peeked) toggle(state.layout.right, true);
}

void step_difference(Frame& frame, DeskState& state, int direction) {
  std::size_t count = frame.snapshot.compared->difference.tensors.size();
  std::size_t now = frame.snapshot.difference.value_or(direction > 0 ? count - 1 : 0);
  state.compare_open = true;
  frame.emit(DifferenceCommand{(now + (direction > 0 ? 1 : count - 1)) % count});
}

}  // namespace

bool run_on_repair(Action action, Frame& frame, DeskState& state) {
  switch (action) {
    case Action::kReview:
      if (frame.snapshot.plan == nullptr) frame.emit(PlanCommand{});
      state.plan_open = true;
      return true;
    case Action::kApply:
      apply_repair(frame, state, false);
      return true;
    case Action::kApplyInPlace:
      apply_repair(frame, state, true);
      return true;
    case Action::kDryRun:
      frame.emit(DryRunCommand{});
      return true;
    case Action::kPlanUndo:
      frame.emit(PlanUndoCommand{});
      return true;
    case Action::kPlanRedo:
      frame.emit(PlanRedoCommand{});
      return true;
    case Action::kVerify:
      frame.emit(VerifyCommand{});
      return true;
    case Action::kUndo:
      frame.emit(UndoCommand{});  // which checks again what it brings back
      return true;
    case Action::kCommit:
      frame.emit(CommitCommand{});
      return true;
    case Action::kResume:
      frame.emit(ResumeCommand{frame.snapshot.target->half_made.front()});
      frame.emit(VerifyCommand{});
      state.plan_open = false;
      return true;
    case Action::kRollBack:
      frame.emit(RollBackCommand{frame.snapshot.target->half_made.front()});
      return true;
    case Action::kCertificate:
      state.certificate_open = true;
      return true;
    case Action::kCompare:
      show_compare(state, !compare_is_seen(state));
      return true;
    case Action::kNextDifference:
      step_difference(frame, state, 1);
      return true;
    case Action::kPreviousDifference:
      step_difference(frame, state, -1);
      return true;
    default:
      return false;
  }
}

}  // namespace shw
