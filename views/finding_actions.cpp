// Actions on the list of tensors, on findings and on the
// window.
#include <algorithm>
#include <array>

#include "core/io/remote/remote_path.h"
#include "core/rules/damage.h"
#include "core/verbs/command_line.h"
#include "views/action_rows.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

void set_filter(Frame& frame, UiState& state, const char* text) {
  state.filter = text;
  frame.emit(FilterCommand{text});
}

void edit_filter(Frame& /*frame*/, UiState& state) {
  state.filter_wanted = true;
  if (state.left_rail && !state.layout.left.peeked) toggle(state.layout.left, true);
}

void toggle_palette(Frame& /*frame*/, UiState& state) {
  state.palette_open = state.palette_wanted = !state.palette_open;
  state.palette_text.clear();
  state.palette_row = state.palette_first = 0;
}

void step_finding(Frame& frame, UiState& state, int direction) {
  std::size_t count = frame.snapshot.report->findings.size();
  std::size_t now = std::min(frame.snapshot.finding.value_or(count - 1), count - 1);
  std::size_t next = direction > 0 ? (now + 1) % count : (now + count - 1) % count;
  if (!frame.snapshot.finding) next = direction > 0 ? 0 : count - 1;
  state.compare_open = false;  // the finding is shown in its column
  frame.emit(SelectFindingCommand{next});
}

bool can_check(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr && !frame.job.running;
}
bool can_check_data(const Frame& frame, const UiState& state) {
  return can_check(frame, state) && !frame.runs("check");
}

bool can_open_again(const Frame& frame, const UiState& /*state*/) {
  return !frame.snapshot.options.checkpoint.empty() && !frame.job.running;
}
void reload(Frame& frame, UiState& /*state*/) {
  frame.emit(reopen_command(frame.snapshot, frame.snapshot.options.checkpoint));
  frame.emit(CheckCommand{frame.snapshot.options.depth});
}

std::string question_before_reload(const Frame& frame) {
  const Snapshot& s = frame.snapshot;
  if (s.edits == nullptr || s.edits->all.size() < 2 || is_plan_executed(s)) return {};
  return "The plan has edits, which opening again drops. Save the plan to keep them.";
}

bool can_cancel(const Frame& frame, const UiState& /*state*/) {
  return frame.anything_runs() || frame.job.looking;
}

bool can_pause(const Frame& frame, const UiState& /*state*/) {
  bool can = frame.job.running && !frame.job.stopping;
  for (const JobState& job : frame.concurrent_jobs) can = can || !job.stopping;
  return can;
}
void toggle_pause(Frame& frame, UiState& /*state*/) {
  bool paused = !frame.job.running || frame.job.paused;
  for (const JobState& job : frame.concurrent_jobs) paused = paused && job.paused;
  if (paused)
    frame.emit(ContinueCommand{});
  else
    frame.emit(PauseCommand{});
}

// The shell command for the current view.
std::string command_text(const Snapshot& snapshot) {
  return command_line("check", snapshot.options);
}

// The findings as text for an issue or a chat.
std::string report_text(const Snapshot& snapshot) {
  std::string text = snapshot.options.checkpoint + "\n";
  if (snapshot.report == nullptr) return text;
  const CheckReport& report = *snapshot.report;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  text +=
      check_headline(checkpoint, report, count_affected_by_findings(checkpoint, report.findings)) +
      "\n";
  const std::string lost = unreadable_text(unreadable_in(checkpoint, report.findings));
  if (!lost.empty()) text += lost + "\n";
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

void copy_report(Frame& frame, UiState& state) {
  ImGui::SetClipboardText(report_text(frame.snapshot).c_str());
  show_toast(frame, state, "Copied the findings as text.");
}
void copy_name(Frame& frame, UiState& state) {
  std::string name(frame.snapshot.checkpoint->fqn(*frame.snapshot.tensor));
  ImGui::SetClipboardText(name.c_str());
  show_toast(frame, state, "Copied " + name);
}
void copy_command(Frame& frame, UiState& state) {
  std::string text = command_text(frame.snapshot);
  ImGui::SetClipboardText(text.c_str());
  show_toast(frame, state, "Copied: " + text);
}

// Names the bytes of remote files that a verb reads; empty if it reads none here.
std::string transfer_question(const Snapshot& s, bool reads_reference) {
  if (s.checkpoint == nullptr || s.runs_over_ssh) return {};
  const bool is_there = is_remote(s.options.checkpoint);
  const bool is_reference_there =
      reads_reference && s.reference != nullptr && is_remote(s.options.against);
  if (!is_there && !is_reference_there) return {};
  const std::uint64_t bytes = (is_there ? s.checkpoint->tensor_bytes() : 0) +
                              (is_reference_there ? s.reference->tensor_bytes() : 0);
  const std::string text = human_bytes(bytes) + " travel to this machine.";
  if (s.why_not_over_ssh.empty()) return text;
  return text + " " + s.why_not_over_ssh + " Otherwise only the answer would travel.";
}

void explain_finding(Frame& /*frame*/, UiState& state) {
  state.panel_state.lesson.clear();
  state.explain_open = true;
}

constexpr std::array kFindingRows{
    ActionRow{Action::kPalette, "Show all commands", ctrl_shift(Key::kP), always, toggle_palette,
              OverlayPolicy::kAlways},
    ActionRow{Action::kFilter, "Filter the tensors", ctrl(Key::kF), has_checkpoint, edit_filter},
    ActionRow{Action::kShowFindings, "List only tensors with findings", ctrl_shift(Key::kF),
              has_checkpoint,
              [](Frame& frame, UiState& state) { set_filter(frame, state, "finding:*"); }},
    ActionRow{Action::kShowAll,
              "List all tensors",
              {},
              has_checkpoint,
              [](Frame& frame, UiState& state) { set_filter(frame, state, ""); }},
    ActionRow{Action::kNextFinding,
              "Go to the next finding",
              {Key::kF8},
              has_findings,
              [](Frame& frame, UiState& state) { step_finding(frame, state, 1); }},
    ActionRow{Action::kPreviousFinding, "Go to the previous finding", shift(Key::kF8), has_findings,
              [](Frame& frame, UiState& state) { step_finding(frame, state, -1); }},
    ActionRow{Action::kCheck, "Check again", {Key::kF6}, can_check, emit_one<CheckCommand>},
    ActionRow{Action::kCheckData, "Check every byte", shift(Key::kF6), can_check_data,
              [](Frame& frame, UiState&) { frame.emit(CheckCommand{Depth::kData}); },
              OverlayPolicy::kBlocked, question_before_check},
    ActionRow{Action::kCancel, "Stop all that is running", shift(Key::kEscape), can_cancel,
              emit_one<CancelCommand>, OverlayPolicy::kAlways},
    ActionRow{Action::kPause,
              "Pause all that is running, or go on with it",
              {Key::kF9},
              can_pause,
              toggle_pause,
              OverlayPolicy::kAlways},
    ActionRow{Action::kExplain,
              "Explain this finding",
              {Key::kF1},
              has_findings,
              explain_finding,
              OverlayPolicy::kReplaces},
    ActionRow{Action::kMesh, "Set the mesh of ranks", ctrl(Key::kM), has_checkpoint,
              [](Frame&, UiState& state) { state.mesh_open = true; }, OverlayPolicy::kReplaces},
    ActionRow{Action::kCopyReport, "Copy the findings as text", ctrl_shift(Key::kC), has_findings,
              copy_report},
    ActionRow{Action::kCopyName, "Copy the tensor's name", ctrl(Key::kC), has_tensor, copy_name},
    ActionRow{
        Action::kCopyCommand, "Copy the command for a terminal", {}, has_checkpoint, copy_command},
    ActionRow{Action::kReload,
              "Open again from disk",
              {Key::kF5},
              can_open_again,
              reload,
              OverlayPolicy::kBlocked,
              question_before_reload},
    ActionRow{Action::kQuit, "Quit", ctrl(Key::kQ), always,
              [](Frame&, UiState& state) { state.quit = true; }, OverlayPolicy::kAlways,
              question_before_stopping},
};

}  // namespace

std::string question_before_transfer(const Frame& frame) {
  return transfer_question(frame.snapshot, false);
}

std::string question_before_check(const Frame& frame) {
  return transfer_question(frame.snapshot, true);
}

std::string question_before_stopping(const Frame& frame) {
  std::string text;
  const auto add = [&](const JobState& job) {
    if (!is_asked_before_stopping(job)) return;
    text += (text.empty() ? "What runs would be stopped. " : " ") + printable(job.title) + ": " +
            stop_consequence_text(job) + ".";
  };
  add(frame.job);
  for (const JobState& job : frame.concurrent_jobs) add(job);
  return text;
}

std::span<const ActionRow> finding_actions() {
  return kFindingRows;
}

}  // namespace shw
