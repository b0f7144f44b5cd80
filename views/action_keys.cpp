// Dispatches keys to actions: all of them in the main window, the suitable ones over panels.
#include "views/action_rows.h"
#include "views/actions.h"
#include "views/panels/content_panels.h"
#include "views/panels/panels.h"
#include "views/panels/plan_parts.h"

namespace shw {
namespace {

// Escape outside panels and text fields closes what was opened last. It keeps the filter, which may
// have taken minutes to write.
void close_last_opened(UiState& state) {
  if (close_overlay_columns(state.layout)) return;
  if (state.names.open) {
    state.names.open = false;
    return;
  }
  if (state.table.open) {
    state.table.open = false;
    return;
  }
  if (state.isolated) return state.isolated.reset();
  if (state.map.zoom > 1) {
    state.map.zoom = 1;
    state.map.pan_row = state.map.pan_column = 0;
    state.map.leads_after = false;
    return;
  }
  if (state.compare_open) {
    state.compare_open = false;
    return;
  }
  state.map_has_keys = false;
}

void escape(Frame& frame, UiState& state, bool typing) {
  if (state.asked)
    state.asked.reset();
  else if (state.palette_open)
    state.palette_open = false;
  else if (state.save.open)
    state.save.open = false;
  else if (panel_is_open(state))
    close_panels(state);
  else if (tour_is_on(state))
    leave_tour(state);
  else if (!typing && viewer_is_open(frame, state))
    close_viewers(frame, state);
  else if (!typing)
    close_last_opened(state);
}

bool is_allowed_over_panel(const ActionRow& row, const UiState& state) {
  return row.overlay == OverlayPolicy::kAlways ||
         ((row.overlay == OverlayPolicy::kRepairPanelOnly ||
           row.overlay == OverlayPolicy::kNeedsRepairPanel) &&
          state.plan_open);
}

// True for letters and for keys that edit text.
bool is_text_key(KeyPress key) {
  bool function = key.key >= Key::kF1 && key.key <= Key::kF12;
  bool of_clipboard = key.ctrl && !key.shift &&
                      (key.key == Key::kC || key.key == Key::kV || key.key == Key::kX ||
                       key.key == Key::kA || key.key == Key::kZ || key.key == Key::kY);
  return of_clipboard || (!key.ctrl && !key.alt && !function && key.key != Key::kEscape);
}

// The key as written in the action table.
KeyPress key_in_action_table(KeyPress key) {
  if (key == KeyPress{Key::kZ, true, true, false}) return key_of(Action::kPlanRedo);
  // On many keyboards plus is typed as Shift and another key.
  if (key == KeyPress{Key::kPlus, true, true, false}) return key_of(Action::kScaleUp);
  if (key == KeyPress{Key::kPlus, false, true, false}) return key_of(Action::kZoomIn);
  return key;
}

// Explains why the key does nothing now.
std::string why_not(const ActionRow& row, const Frame& frame, const UiState& state) {
  if (row.action == Action::kApply && state.plan_open && !state.palette_open)
    return why_not_applied(frame, state);
  const char* why = row.is_possible == has_tensor       ? "choose a tensor first"
                    : row.is_possible == has_checkpoint ? "nothing is open"
                    : row.is_possible == has_findings   ? "there is no finding"
                                                        : "not possible now";
  return std::string(row.name) + ": " + why + ".";
}

// In a text field Ctrl+Enter ends what is typed, so it writes only from the field of the folder
// that is written.
bool ignores_key_while_typing(const ActionRow& row, const UiState& state) {
  return row.overlay == OverlayPolicy::kNeedsRepairPanel && state.plan_open &&
         !state.plan.out_has_keys;
}

}  // namespace

void request_action(Action action, Frame& frame, UiState& state) {
  const ActionRow& row = row_of(action);
  if (!is_possible(action, frame, state))
    return show_toast(frame, state, why_not(row, frame, state));
  const bool plan_is_in_sight = state.plan_open && !state.palette_open;
  // Actions with a question are not redirected to the plan panel: their question already says what
  // the panel would show.
  const bool concerns_plan =
      row.overlay == OverlayPolicy::kNeedsRepairPanel ||
      (row.overlay == OverlayPolicy::kRepairPanelOnly && row.question == nullptr);
  if (concerns_plan && !plan_is_in_sight) {
    close_panels(state);
    state.palette_open = false;
    state.plan_open = true;
    // A dry run starts at once, because it writes nothing and the plan panel shows its result.
    if (action != Action::kDryRun) return;
  }
  const std::string question = row.question == nullptr ? std::string() : row.question(frame);
  if (!question.empty()) {
    state.palette_open = false;
    state.asked = action;
    state.asked_text = question;
    return;
  }
  if (!is_allowed_over_panel(row, state)) close_panels(state);
  if (action != Action::kPalette) state.palette_open = false;
  run(action, frame, state);
}

void run_keys(Frame& frame, UiState& state) {
  bool typing = ImGui::GetIO().WantTextInput;
  if (state.quit_wanted) request_action(Action::kQuit, frame, state);
  state.quit_wanted = false;
  if (state.close_wanted) request_action(Action::kCloseTab, frame, state);
  state.close_wanted = false;
  for (KeyPress pressed : frame.keys) {
    KeyPress key = key_in_action_table(pressed);
    if (key == KeyPress{Key::kEscape}) {
      escape(frame, state, typing);
      continue;
    }
    if (state.asked || (typing && is_text_key(key))) continue;
    for (const ActionRow& row : all_actions()) {
      if (row.key.key == Key::kNone || !(row.key == key)) continue;
      if (typing && ignores_key_while_typing(row, state)) continue;
      // The palette lists the keys of all actions, so all of them work there.
      bool here = state.palette_open || !panel_is_open(state) ||
                  is_allowed_over_panel(row, state) || row.overlay == OverlayPolicy::kReplaces;
      if (here) request_action(row.action, frame, state);
    }
  }
}

}  // namespace shw
