#include "views/panels/panels.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/action_rows.h"
#include "views/panels/content_panels.h"

namespace shw {
namespace {

constexpr std::array kScales{1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0};

const char* title_of(verbs::UiTheme theme) {
  switch (theme) {
    case verbs::UiTheme::kDark:
      return "Dark";
    case verbs::UiTheme::kLight:
      return "Light";
    case verbs::UiTheme::kContrast:
      break;
  }
  return "High contrast";
}

void set_theme(const Frame& frame, UiState& state, verbs::UiTheme theme) {
  state.panel_state.settings.theme = theme;
  show_toast(frame, state, std::string(title_of(theme)) + " theme");
}

void set_scale(const Frame& frame, UiState& state, double scale) {
  state.panel_state.settings.scale = scale;
  show_toast(frame, state, fmt::format("Scale {:.0f} %", scale * 100));
}

verbs::SideSettings side_of(const SideColumn& column) {
  return {column.wanted, static_cast<double>(column.part)};
}

void apply_side_settings(SideColumn& column, const verbs::SideSettings& side) {
  column.wanted = side.open;
  column.part = static_cast<float>(side.part);
}

}  // namespace

verbs::UiSettings settings_of(const UiState& state) {
  verbs::UiSettings settings = state.panel_state.settings;
  settings.left = side_of(state.layout.left);
  settings.right = side_of(state.layout.right);
  settings.sort = state.sort.key;
  settings.descending = state.sort.descending;
  settings.columns = state.table.widths;
  if (state.panel_state.restore) settings.panel = *state.panel_state.restore;
  return settings;
}

void apply_settings(UiState& state, const verbs::UiSettings& settings) {
  state.panel_state.settings = settings;
  const std::uint32_t ranks = settings.ranks_per_node;
  state.panel_state.ranks_per_node = ranks == 0 ? "" : std::to_string(ranks);
  apply_side_settings(state.layout.left, settings.left);
  apply_side_settings(state.layout.right, settings.right);
  state.sort = {settings.sort, settings.descending};
  state.table.widths = settings.columns;
  if (settings.panel != verbs::UiPanel::kMap) state.panel_state.restore = settings.panel;
}

void restore_panel(Frame& frame, UiState& state) {
  const Snapshot& s = frame.snapshot;
  if (s.checkpoint == nullptr) return;
  auto& kept = state.panel_state.settings.panel;
  if (!state.panel_state.restore) {
    kept = s.bytes != nullptr    ? verbs::UiPanel::kBytes
           : s.values != nullptr ? verbs::UiPanel::kValues
           : state.table.open    ? verbs::UiPanel::kTable
           : state.summary_open  ? verbs::UiPanel::kOverview
                                 : verbs::UiPanel::kMap;
    return;
  }
  // The panel shows the tensor that the check selects.
  if (s.report == nullptr || frame.job.running) return;
  verbs::UiPanel panel = *state.panel_state.restore;
  state.panel_state.restore.reset();
  // With findings the map is shown, because another restored panel would hide them.
  if (frame.digest.about->affected.causes != 0) return;
  state.summary_open = panel == verbs::UiPanel::kOverview;
  state.summary_for = s.tensor;
  state.table.open = panel == verbs::UiPanel::kTable;
  if (!s.tensor) return;
  if (panel == verbs::UiPanel::kBytes) show_bytes(frame, state, false);
  if (panel == verbs::UiPanel::kValues) show_values(frame, state);
}

double next_scale(double scale, int direction) {
  constexpr double kSame = 0.01;
  if (direction > 0) {
    auto next = std::upper_bound(kScales.begin(), kScales.end(), scale + kSame);
    return next == kScales.end() ? kScales.back() : *next;
  }
  auto here = std::lower_bound(kScales.begin(), kScales.end(), scale - kSame);
  return here == kScales.begin() ? kScales.front() : *std::prev(here);
}

void show_toast(const Frame& frame, UiState& state, std::string text) {
  state.toast = std::move(text);
  state.toast_until = frame.now + 4;
}

void draw_secondary_panels(Frame& frame, UiState& state) {
  follow_report(frame, state);
  follow_written_files(frame, state);
  if (state.panel_state.settings_open) draw_settings(frame, state);
  if (state.panel_state.errors_open) draw_error_meaning(frame, state);
  if (state.panel_state.expect_open) draw_expectation(frame, state);
  if (state.panel_state.pins_open) draw_pins(frame, state);
  if (state.write.open) draw_write_panel(frame, state);
  if (state.panel_state.report_open) draw_report(frame, state);
}

namespace {

void use_next_theme(Frame& frame, UiState& state) {
  auto next =
      (static_cast<std::size_t>(state.panel_state.settings.theme) + 1) % verbs::kUiThemes.size();
  set_theme(frame, state, verbs::kUiThemes[next]);
}
template <verbs::UiTheme kTheme>
void use_theme(Frame& frame, UiState& state) {
  set_theme(frame, state, kTheme);
}
template <int kDirection>
void step_scale(Frame& frame, UiState& state) {
  set_scale(frame, state, next_scale(state.panel_state.settings.scale, kDirection));
}

void explain_errors(Frame& /*frame*/, UiState& state) {
  state.panel_state.errors_open = state.panel_state.errors_wanted = true;
}

bool can_save_view(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.checkpoint != nullptr;
}

bool can_hash(const Frame& frame, const UiState& state) {
  return can_save_view(frame, state) && !frame.runs("hash");
}

bool can_report(const Frame& frame, const UiState& /*state*/) {
  return frame.snapshot.report != nullptr && !frame.job.running;
}
bool can_open_demo(const Frame& frame, const UiState& state) {
  return !state.panel_state.cache_folder.empty() && !frame.job.running;
}
bool can_tour(const Frame& frame, const UiState& state) {
  return tour_is_on(state) || frame.snapshot.report != nullptr || can_open_demo(frame, state);
}

constexpr std::array kSecondaryPanelActions{
    ActionRow{Action::kSettings, "Settings", ctrl(Key::kComma), always,
              [](Frame&, UiState& state) { state.panel_state.settings_open = true; },
              OverlayPolicy::kReplaces},
    ActionRow{Action::kNextTheme, "Use the next theme", ctrl_shift(Key::kT), always, use_next_theme,
              OverlayPolicy::kAlways},
    ActionRow{Action::kDarkTheme,
              "Use the dark theme",
              {},
              always,
              use_theme<verbs::UiTheme::kDark>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kLightTheme,
              "Use the light theme",
              {},
              always,
              use_theme<verbs::UiTheme::kLight>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kContrastTheme,
              "Use the theme of high contrast",
              {},
              always,
              use_theme<verbs::UiTheme::kContrast>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kScaleUp, "Larger text", ctrl(Key::kPlus), always, step_scale<1>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kScaleDown, "Smaller text", ctrl(Key::kMinus), always, step_scale<-1>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kScaleReset, "Reset the size of text", ctrl(Key::k0), always,
              [](Frame& frame, UiState& state) { set_scale(frame, state, 1); },
              OverlayPolicy::kAlways},
    ActionRow{Action::kExplainError, "Explain an error message", shift(Key::kF1), always,
              explain_errors, OverlayPolicy::kReplaces},
    ActionRow{Action::kExportPng,
              "Export what is on the screen as PNG",
              {Key::kF12},
              has_checkpoint,
              request_file<verbs::NewFile::kPng>,
              OverlayPolicy::kAlways},
    ActionRow{Action::kExportSvg, "Export what is on the screen as SVG", shift(Key::kF12),
              has_checkpoint, request_file<verbs::NewFile::kSvg>, OverlayPolicy::kAlways},
    ActionRow{Action::kPins, "Pin this place with a note, or go to a pinned one",
              ctrl_shift(Key::kK), has_checkpoint, open_pins, OverlayPolicy::kReplaces},
    ActionRow{Action::kSaveView,
              "Save this place as a file for a colleague",
              {},
              can_save_view,
              request_file<verbs::NewFile::kView>,
              OverlayPolicy::kReplaces},
    ActionRow{Action::kReport, "Write a report of what is on the screen", ctrl_shift(Key::kR),
              can_report, request_file<verbs::NewFile::kReport>, OverlayPolicy::kReplaces},
    ActionRow{Action::kHashes,
              "Write the hash of every tensor into a file",
              {},
              can_hash,
              request_file<verbs::NewFile::kHashes>,
              OverlayPolicy::kReplaces,
              question_before_transfer},
    ActionRow{Action::kOpenDemo, "Open the demo", {}, can_open_demo, open_demo},
    ActionRow{Action::kTour, "Take the tour", {Key::kF2}, can_tour, step_tour},
    ActionRow{Action::kExpect, "Set the expected shapes", ctrl(Key::kE), has_checkpoint,
              open_expectation, OverlayPolicy::kReplaces},
    ActionRow{Action::kWriteAs, "Write in another form: convert, reshard, merge, average",
              ctrl_shift(Key::kS), has_checkpoint, open_write_panel, OverlayPolicy::kReplaces},
};

}  // namespace

std::span<const ActionRow> secondary_panel_actions() {
  return kSecondaryPanelActions;
}

}  // namespace shw
