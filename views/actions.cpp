#include "views/actions.h"

#include <algorithm>
#include <array>

#include "core/verbs/command_line.h"
#include "views/browser.h"
#include "views/habits.h"
#include "views/look_panels.h"
#include "views/text.h"
#include "views/tile_colours.h"

namespace shw {
namespace {

constexpr KeyPress ctrl(Key key) {
  return {key, true, false, false};
}

constexpr std::array<ActionRow, 77> kActions{{
    {Action::kPalette, "Show all commands", {Key::kP, true, true, false}},
    {Action::kFilter, "Filter the tensors", ctrl(Key::kF)},
    {Action::kShowFindings, "List only tensors with findings", {Key::kF, true, true, false}},
    {Action::kShowAll, "List all tensors", {}},
    {Action::kNextFinding, "Go to the next finding", {Key::kF8}},
    {Action::kPreviousFinding, "Go to the previous finding", {Key::kF8, false, true, false}},
    {Action::kReview, "Review the repair", ctrl(Key::kR)},
    {Action::kApply, "Apply the repair into a new directory", ctrl(Key::kEnter)},
    {Action::kApplyInPlace, "Apply the repair in place", {}},
    {Action::kDryRun, "Say what the repair takes", ctrl(Key::kD)},
    {Action::kPlanUndo, "Undo the last edit of the plan", ctrl(Key::kZ)},
    {Action::kPlanRedo, "Redo the edit of the plan", ctrl(Key::kY)},
    {Action::kResume, "Go on with the repair that was stopped", {}},
    {Action::kRollBack, "Take away what the stopped repair left", {}},
    {Action::kCommit, "Keep the repair in place for good", {}},
    {Action::kCertificate, "Show the certificate", {Key::kF7}},
    {Action::kCompare, "Compare with another checkpoint", ctrl(Key::kK)},
    {Action::kNextDifference, "Go to the next difference", ctrl(Key::kF8)},
    {Action::kPreviousDifference, "Go to the previous difference", {Key::kF8, true, true, false}},
    {Action::kVerify, "Verify what was repaired", {}},
    {Action::kOpenRepaired, "Open what was repaired", {}},
    {Action::kUndo, "Undo a repair in place", {}},
    {Action::kCheck, "Check again", {Key::kF6}},
    {Action::kCheckData, "Check every byte", {Key::kF6, false, true, false}},
    {Action::kCancel, "Stop all that is running", {Key::kEscape, false, true, false}},
    {Action::kPause, "Pause all that is running, or go on with it", {Key::kF9}},
    {Action::kExplain, "Explain this finding", {Key::kF1}},
    {Action::kMesh, "Say how the ranks lie", ctrl(Key::kM)},
    {Action::kCopyReport, "Copy the findings as text", {Key::kC, true, true, false}},
    {Action::kCopyName, "Copy the tensor's name", ctrl(Key::kC)},
    {Action::kCopyCommand, "Copy the command for a terminal", {}},
    {Action::kSummary, "Show the checkpoint as a whole", ctrl(Key::kHome)},
    {Action::kLeftColumn, "Show or hide the list of tensors", ctrl(Key::kB)},
    {Action::kRightColumn, "Show or hide the findings", {Key::kB, true, true, false}},
    {Action::kZoomIn, "Zoom in", {Key::kPlus}},
    {Action::kZoomOut, "Zoom out", {Key::kMinus}},
    {Action::kZoomFit, "Show the whole tensor", {Key::k0}},
    {Action::kColourWriter, "Colour the tiles by writer", ctrl(Key::k1)},
    {Action::kColourFile, "Colour the tiles by file", ctrl(Key::k2)},
    {Action::kColourFinding, "Colour the tiles by finding", ctrl(Key::k3)},
    {Action::kColourOdd, "Colour the tiles by NaN and infinite", ctrl(Key::k4)},
    {Action::kColourGreatest, "Colour the tiles by largest magnitude", ctrl(Key::k5)},
    {Action::kColourZeros, "Colour the tiles by share of zeros", ctrl(Key::k6)},
    {Action::kColourAxis, "Colour the tiles by the next axis of the mesh", ctrl(Key::k7)},
    {Action::kLookAtTiles, "Look at the values of every tile", {}},
    {Action::kSortRecorded, "Sort as recorded", {}},
    {Action::kSortName, "Sort by name", {}},
    {Action::kSortBytes, "Sort by bytes, largest first", {}},
    {Action::kSortTiles, "Sort by tiles, most first", {}},
    {Action::kSortFindings, "Sort by findings, worst first", {}},
    {Action::kFoldAll, "Fold all modules", {}},
    {Action::kUnfoldAll, "Unfold all modules", {}},
    {Action::kReload, "Open again from disk", {Key::kF5}},
    {Action::kQuit, "Quit", ctrl(Key::kQ)},
    {Action::kShowBytes, "Show the bytes", ctrl(Key::kH)},
    {Action::kShowFindingBytes, "Show the bytes of the finding", {Key::kH, true, true, false}},
    {Action::kNextRecord, "Go to the next record", {Key::kDown, false, false, true}},
    {Action::kPreviousRecord, "Go to the previous record", {Key::kUp, false, false, true}},
    {Action::kCopyBytes, "Copy the bytes as text", {}},
    {Action::kShowValues, "Show the values", {Key::kV, true, true, false}},
    {Action::kTable, "Show the tensors as a table", ctrl(Key::kT)},
    {Action::kOpen, "Open a checkpoint", ctrl(Key::kO)},
    {Action::kBack, "Go back", {Key::kLeft, false, false, true}},
    {Action::kForward, "Go forward", {Key::kRight, false, false, true}},
    {Action::kSettings, "Settings", ctrl(Key::kComma)},
    {Action::kNextTheme, "Use the next theme", {Key::kT, true, true, false}},
    {Action::kDarkTheme, "Use the dark theme", {}},
    {Action::kLightTheme, "Use the light theme", {}},
    {Action::kContrastTheme, "Use the theme of high contrast", {}},
    {Action::kScaleUp, "Make everything larger", ctrl(Key::kPlus)},
    {Action::kScaleDown, "Make everything smaller", ctrl(Key::kMinus)},
    {Action::kScaleReset, "Make everything of its own size", ctrl(Key::k0)},
    {Action::kExplainError, "Explain an error message", {Key::kF1, false, true, false}},
    {Action::kReport, "Write a report of what is on the screen", {Key::kR, true, true, false}},
    {Action::kOpenDemo, "Open the demo", {}},
    {Action::kTour, "Lead me around the desk", {Key::kF2}},
    {Action::kExpect, "Say what is expected of it", ctrl(Key::kE)},
}};

void sort_by(Frame& frame, DeskState& state, SortKey key, bool descending) {
  state.sort = {key, descending};
  frame.emit(state.sort);
}

void set_filter(Frame& frame, DeskState& state, const char* text) {
  state.filter = text;
  frame.emit(FilterCommand{text});
}

void say(Frame& frame, DeskState& state, std::string text) {
  state.toast = std::move(text);
  state.toast_until = frame.now + 4;
}

void step_finding(Frame& frame, int direction) {
  std::size_t count = frame.snapshot.report->findings.size();
  std::size_t now = std::min(frame.snapshot.finding.value_or(count - 1), count - 1);
  std::size_t next = direction > 0 ? (now + 1) % count : (now + count - 1) % count;
  if (!frame.snapshot.finding) next = direction > 0 ? 0 : count - 1;
  frame.emit(SelectFindingCommand{next});
}

void zoom_by(DeskState& state, double factor) {
  state.map.zoom = std::clamp(state.map.zoom * factor, 1.0, 1e7);
}

// What lies above it, or in its place, is put away: else the key would seem to be dead.
void toggle_summary(Frame& frame, DeskState& state) {
  bool is_seen = state.summary_open && !state.table.open && !look_is_open(frame, state);
  close_looks(frame, state);
  state.table.open = false;
  state.summary_open = !is_seen;
  state.summary_for = frame.snapshot.tensor;
}

bool can_be_paused(const Frame& frame) {
  bool can = frame.job.running && !frame.job.stopping;
  for (const JobState& job : frame.beside) can = can || !job.stopping;
  return can;
}
bool all_are_paused(const Frame& frame) {
  bool all = !frame.job.running || frame.job.paused;
  for (const JobState& job : frame.beside) all = all && job.paused;
  return all;
}

void run_sort_or_list(Action action, Frame& frame, DeskState& state) {
  switch (action) {
    case Action::kSortRecorded:
      return sort_by(frame, state, SortKey::kRecorded, false);
    case Action::kSortName:
      return sort_by(frame, state, SortKey::kName, false);
    case Action::kSortBytes:
      return sort_by(frame, state, SortKey::kBytes, true);
    case Action::kSortTiles:
      return sort_by(frame, state, SortKey::kChunks, true);
    case Action::kSortFindings:
      return sort_by(frame, state, SortKey::kFindings, true);
    case Action::kFoldAll:
      for (const ListGroup& group : frame.digest.list->groups) state.folded.emplace(group.module);
      state.unfolded.clear();
      return;
    case Action::kUnfoldAll:
      for (const ListRun& run : frame.digest.list->runs) state.unfolded.emplace(run.title);
      return state.folded.clear();
    default:
      run_look(action, frame, state);
      return run_browser(action, frame, state);
  }
}

// What is seen and of what size: nothing of it leaves the desk.
void run_view(Action action, Frame& frame, DeskState& state) {
  switch (action) {
    case Action::kSummary:
      return toggle_summary(frame, state);
    case Action::kLeftColumn:
      return toggle(state.layout.left, state.left_rail);
    case Action::kRightColumn:
      return toggle(state.layout.right, state.right_rail);
    case Action::kZoomIn:
      return zoom_by(state, 1.5);
    case Action::kZoomOut:
      return zoom_by(state, 1 / 1.5);
    case Action::kZoomFit:
      state.map.zoom = 1;
      state.map.pan_row = state.map.pan_column = 0;
      return;
    case Action::kColourWriter:
      return colour_by(frame, state, ColourBy::kWriter);
    case Action::kColourFile:
      return colour_by(frame, state, ColourBy::kFile);
    case Action::kColourFinding:
      return colour_by(frame, state, ColourBy::kFinding);
    case Action::kColourOdd:
      return colour_by(frame, state, ColourBy::kOdd);
    case Action::kColourGreatest:
      return colour_by(frame, state, ColourBy::kGreatest);
    case Action::kColourZeros:
      return colour_by(frame, state, ColourBy::kZeros);
    case Action::kColourAxis: {
      // Behind the last one the writer, of whom all axes together tell.
      const int next = state.colour_by == ColourBy::kWriter ? state.colour_axis + 1 : 0;
      colour_by(frame, state, ColourBy::kWriter);
      if (static_cast<std::size_t>(next) < frame.digest.mesh->axes.size()) state.colour_axis = next;
      return;
    }
    case Action::kLookAtTiles:
      return look_at_tiles(frame, state);
    default:
      return run_sort_or_list(action, frame, state);
  }
}

}  // namespace

std::span<const ActionRow> all_actions() {
  return kActions;
}

KeyPress key_of(Action action) {
  for (const ActionRow& row : kActions) {
    if (row.action == action) return row.key;
  }
  return {};
}

bool is_possible(Action action, const Frame& frame, const DeskState& state) {
  const Snapshot& s = frame.snapshot;
  bool findings = s.report != nullptr && !s.report->findings.empty();
  bool plan = s.plan != nullptr && !s.plan->empty();
  bool idle = !frame.job.running;       // of what writes, or changes what is open
  bool alone = !frame.anything_runs();  // nothing reads what would be changed either
  if (auto possible = is_habit_possible(action, frame, state)) return *possible;
  switch (action) {
    case Action::kNextFinding:
    case Action::kPreviousFinding:
    case Action::kExplain:
    case Action::kCopyReport:
      return findings;
    case Action::kShowFindings:
    case Action::kShowAll:
    case Action::kFilter:
    case Action::kCopyCommand:
    case Action::kMesh:
      return s.checkpoint != nullptr;
    case Action::kReview:
      return findings && s.repaired == nullptr;
    case Action::kApply: {
      bool refused = s.target != nullptr && s.target->said == state.out && s.target->refused;
      return plan && idle && s.repaired == nullptr && !refused;
    }
    case Action::kDryRun:
      return plan && idle && s.repaired == nullptr && !frame.runs("dry-run");
    case Action::kPlanUndo:
      return s.edits != nullptr && s.edits->can_undo() && s.repaired == nullptr;
    case Action::kPlanRedo:
      return s.edits != nullptr && s.edits->can_redo() && s.repaired == nullptr;
    case Action::kApplyInPlace:
      return plan && alone && s.repaired == nullptr && !s.not_in_place;
    case Action::kOpenRepaired:
      return s.repaired != nullptr && idle;
    case Action::kVerify:
      return s.repaired != nullptr && idle && !frame.runs("verify");
    case Action::kUndo:
    case Action::kCommit:
      return s.can_undo && alone;
    case Action::kResume:
    case Action::kRollBack:
      return s.target != nullptr && !s.target->half_made.empty() && idle;
    case Action::kCertificate:
      return s.certificate != nullptr;
    case Action::kCompare:
      return s.checkpoint != nullptr;
    case Action::kNextDifference:
    case Action::kPreviousDifference:
      return s.compared != nullptr && !s.compared->difference.tensors.empty();
    case Action::kCheck:
      return s.checkpoint != nullptr && idle;
    case Action::kCheckData:
      return s.checkpoint != nullptr && idle && !frame.runs("check");
    case Action::kReload:
      return !s.said.checkpoint.empty() && idle;
    case Action::kCancel:
      return frame.anything_runs() || frame.job.looking;
    case Action::kPause:
      return can_be_paused(frame);
    case Action::kLookAtTiles:
      return s.tensor && !tiles_are_known(s);
    case Action::kOpen:
      return true;
    case Action::kBack:
      return s.can_go_back && idle;
    case Action::kForward:
      return s.can_go_forward && idle;
    case Action::kShowFindingBytes:
      return findings;
    case Action::kNextRecord:
    case Action::kPreviousRecord:
    case Action::kCopyBytes:
      return s.bytes != nullptr && s.bytes->window;
    case Action::kShowBytes:
    case Action::kShowValues:
    case Action::kCopyName:
    case Action::kZoomIn:
    case Action::kZoomOut:
    case Action::kZoomFit:
    case Action::kColourWriter:
    case Action::kColourFile:
    case Action::kColourFinding:
    case Action::kColourOdd:
    case Action::kColourGreatest:
    case Action::kColourZeros:
      return s.tensor.has_value();
    case Action::kColourAxis:
      return s.tensor.has_value() && frame.digest.mesh != nullptr &&
             !frame.digest.mesh->axes.empty();
    default:
      return s.checkpoint != nullptr || action == Action::kQuit || action == Action::kPalette;
  }
}

void run(Action action, Frame& frame, DeskState& state) {
  if (!is_possible(action, frame, state)) return;
  switch (action) {
    case Action::kPalette:
      state.palette_open = state.palette_wanted = !state.palette_open;
      state.palette_text.clear();
      state.palette_row = state.palette_first = 0;
      return;
    case Action::kFilter:
      state.filter_wanted = true;
      if (state.left_rail && !state.layout.left.peeked) toggle(state.layout.left, true);
      return;
    case Action::kShowFindings:
      return set_filter(frame, state, "finding:*");
    case Action::kShowAll:
      return set_filter(frame, state, "");
    case Action::kNextFinding:
      return step_finding(frame, 1);
    case Action::kPreviousFinding:
      return step_finding(frame, -1);
    case Action::kCheck:
      return frame.emit(CheckCommand{});
    case Action::kCheckData:
      return frame.emit(CheckCommand{Depth::kData});
    case Action::kCancel:
      return frame.emit(CancelCommand{});
    case Action::kPause:
      return all_are_paused(frame) ? frame.emit(ContinueCommand{}) : frame.emit(PauseCommand{});
    case Action::kExplain:
      state.habits.lesson.clear();
      state.explain_open = true;
      return;
    case Action::kMesh:
      state.mesh_open = true;
      return;
    case Action::kCopyReport:
      ImGui::SetClipboardText(report_text(frame.snapshot).c_str());
      return say(frame, state, "Copied the findings as text.");
    case Action::kCopyName: {
      std::string name(frame.snapshot.checkpoint->fqn(*frame.snapshot.tensor));
      ImGui::SetClipboardText(name.c_str());
      return say(frame, state, "Copied " + name);
    }
    case Action::kCopyCommand:
      ImGui::SetClipboardText(command_text(frame.snapshot).c_str());
      return say(frame, state, "Copied: " + command_text(frame.snapshot));
    case Action::kOpenRepaired:
      state.filter.clear();
      frame.emit(FilterCommand{});
      frame.emit(open_again(frame.snapshot, frame.snapshot.repaired->output));
      return frame.emit(CheckCommand{});
    case Action::kReload:
      frame.emit(open_again(frame.snapshot, frame.snapshot.said.checkpoint));
      return frame.emit(CheckCommand{frame.snapshot.said.depth});
    case Action::kQuit:
      state.quit = true;
      return;
    default:
      if (!run_on_repair(action, frame, state) && !run_habit(action, frame, state))
        run_view(action, frame, state);
  }
}

std::string report_text(const Snapshot& snapshot) {
  std::string text = snapshot.said.checkpoint + "\n";
  if (snapshot.report == nullptr) return text;
  for (const Finding& finding : snapshot.report->findings) {
    text += "\n" + finding.rule + "  " + plural(finding.subjects.size(), "subject") + "\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(finding.subjects.size(), 10); ++i)
      text += "  " + finding.subjects[i] + "\n";
    text += finding.cause + "\n";
    text += "Remedy: " + (finding.remedy ? finding.remedy->text : "no safe remedy") + "\n";
    if (!finding.link.empty()) text += "Known upstream: " + finding.link + "\n";
  }
  return text + "\n" + command_text(snapshot) + "\n";
}

std::string command_text(const Snapshot& snapshot) {
  return command_line("check", snapshot.said);
}

}  // namespace shw
