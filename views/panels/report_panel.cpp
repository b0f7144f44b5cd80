// Shows where a report or a view was saved.
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

namespace {

void follow_file(const Frame& frame, UiState& state, RequestedFile& awaited,
                 const std::shared_ptr<const verbs::WrittenReport>& written) {
  if (!awaited.asked || written == awaited.before.lock()) return;
  awaited.asked = false;
  if (written == nullptr) return;
  ImGui::SetClipboardText(written->path.c_str());
  show_toast(frame, state, "Saved, and its path copied: " + printable(written->path));
}

}  // namespace

void follow_written_files(const Frame& frame, UiState& state) {
  follow_file(frame, state, state.panel_state.view, frame.snapshot.saved_view);
  follow_file(frame, state, state.panel_state.hashes, frame.snapshot.hashes);
}

// Opens when a requested report has arrived.
void follow_report(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  if (!panel_state.report_asked || frame.snapshot.written == panel_state.report_before.lock())
    return;
  panel_state.report_asked = false;
  panel_state.report_open = frame.snapshot.written != nullptr;
}

void draw_report(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  if (frame.snapshot.written == nullptr) return;
  const verbs::WrittenReport& written = *frame.snapshot.written;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##report", 620, panel_state.report_height,
                   "The report is written", panel))
    panel_state.report_open = false;
  Column& column = panel.content;
  caption(frame, column,
          "One page without outside references: what was found, what was not checked, what a "
          "repair would do, the tensor on the screen, and the places that were saved.",
          Gap::kMedium);
  paragraph(frame, column, frame.fonts.mono_small, frame.theme.text, printable(written.path));
  caption(frame, column, human_bytes(written.bytes), Gap::kLarge);
  panel_state.report_height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (line.button("report/copy", "Copy the path", "Copies the path of the report.")) {
    ImGui::SetClipboardText(written.path.c_str());
    show_toast(frame, state, "Copied " + written.path);
    panel_state.report_open = false;
  }
  if (close_button(line, "report/close")) panel_state.report_open = false;
  end_overlay();
}

}  // namespace shw
