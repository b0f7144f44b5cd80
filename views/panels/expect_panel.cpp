// The panel for spec and reference. Without either, missing tensors and wrong shapes cannot be
// detected.
#include <imgui.h>

#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"

namespace shw {
namespace {

// Reopens the checkpoint with this spec or reference, keeps the selected tensor and repeats the
// check at the same depth.
void reopen_with_expectation(Frame& frame, UiState& state, const std::string& spec,
                             const std::string& against) {
  const Snapshot& s = frame.snapshot;
  OpenCommand open = reopen_command(s, s.options.checkpoint);
  open.spec = spec;
  open.against = against;
  if (s.tensor) open.tensor = s.checkpoint->fqn(*s.tensor);
  std::optional<Depth> depth;
  if (s.report != nullptr) depth = s.report->depth;
  frame.emit(std::move(open));
  frame.emit(CheckCommand{depth});
  state.panel_state.expect_open = false;
}

}  // namespace

void open_expectation(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  panel_state.expect_open = panel_state.wants_expect_focus = true;
  panel_state.expect_spec = frame.snapshot.options.spec;
  panel_state.expect_against = frame.snapshot.options.against;
}

void draw_expectation(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##expect", 620, panel_state.expect_height, "Expected contents",
                   panel))
    panel_state.expect_open = false;
  Column& column = panel.content;
  paragraph(
      frame, column, frame.fonts.text, frame.theme.quiet,
      "A checkpoint alone does not say what should be in it. A spec, or another checkpoint of "
      "the same model, shows missing tensors and wrong shapes.",
      Gap::kLarge);
  if (panel_state.wants_expect_focus) ImGui::SetKeyboardFocusHere();
  panel_state.wants_expect_focus = false;
  bool enter =
      explained_field(frame, column, "expect/spec", "A SPEC OF THE MODEL", "/runs/7/spec.json",
                      "JSON that export_spec.py of Shardwright writes from the live model: "
                      "names, shapes, dtypes, mesh and placements.",
                      panel_state.expect_spec);
  enter =
      explained_field(frame, column, "expect/against", "ANOTHER CHECKPOINT OF THE MODEL",
                      "/runs/7/step_8000", "An earlier step, or one of the same model that loads.",
                      panel_state.expect_against) ||
      enter;
  panel_state.expect_height = end_panel_content(frame, panel);
  bool says = !panel_state.expect_spec.empty() || !panel_state.expect_against.empty();
  bool said = !frame.snapshot.options.spec.empty() || !frame.snapshot.options.against.empty();
  bool idle = !frame.job.running;
  Line line(frame, panel.all);
  if (says && idle &&
      (line.button_at_end("expect/use", "Check with it",
                          "Opens the checkpoint again and checks it against these.  (Enter)",
                          ButtonStyle::kPrimary) ||
       enter))
    reopen_with_expectation(frame, state, panel_state.expect_spec, panel_state.expect_against);
  if (close_button(line, "expect/close")) panel_state.expect_open = false;
  if (said && idle &&
      line.button("expect/forget", "Clear the expectation",
                  "Checks it again without a spec and without another checkpoint.",
                  ButtonStyle::kQuiet))
    reopen_with_expectation(frame, state, "", "");
  end_overlay();
}

}  // namespace shw
