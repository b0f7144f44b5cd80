#include "views/habits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/action_rows.h"
#include "views/look_panels.h"

namespace shw {
namespace {

constexpr std::array kScales{1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0};

const char* title_of(verbs::DeskTheme theme) {
  switch (theme) {
    case verbs::DeskTheme::kDark:
      return "Dark";
    case verbs::DeskTheme::kLight:
      return "Light";
    case verbs::DeskTheme::kContrast:
      break;
  }
  return "High contrast";
}

void set_theme(const Frame& frame, DeskState& state, verbs::DeskTheme theme) {
  state.habits.settings.theme = theme;
  tell(frame, state, std::string(title_of(theme)) + " theme");
}

void set_scale(const Frame& frame, DeskState& state, double scale) {
  state.habits.settings.scale = scale;
  tell(frame, state, fmt::format("Scale {:.0f} %", scale * 100));
}

verbs::SideSettings side_of(const SideColumn& column) {
  return {column.wanted, static_cast<double>(column.part)};
}

void use_side(SideColumn& column, const verbs::SideSettings& side) {
  column.wanted = side.open;
  column.part = static_cast<float>(side.part);
}

}  // namespace

verbs::DeskSettings settings_of(const DeskState& state) {
  verbs::DeskSettings settings = state.habits.settings;
  settings.left = side_of(state.layout.left);
  settings.right = side_of(state.layout.right);
  settings.sort = state.sort.key;
  settings.descending = state.sort.descending;
  settings.columns = state.table.widths;
  if (state.habits.restore) settings.panel = *state.habits.restore;
  return settings;
}

void use_settings(DeskState& state, const verbs::DeskSettings& settings) {
  state.habits.settings = settings;
  use_side(state.layout.left, settings.left);
  use_side(state.layout.right, settings.right);
  state.sort = {settings.sort, settings.descending};
  state.table.widths = settings.columns;
  if (settings.panel != verbs::DeskPanel::kMap) state.habits.restore = settings.panel;
}

void restore_panel(Frame& frame, DeskState& state) {
  const Snapshot& s = frame.snapshot;
  if (s.checkpoint == nullptr) return;
  auto& kept = state.habits.settings.panel;
  if (!state.habits.restore) {
    kept = s.bytes != nullptr    ? verbs::DeskPanel::kBytes
           : s.values != nullptr ? verbs::DeskPanel::kValues
           : state.table.open    ? verbs::DeskPanel::kTable
           : state.summary_open  ? verbs::DeskPanel::kOverview
                                 : verbs::DeskPanel::kMap;
    return;
  }
  // What is looked into is the tensor that the check selects.
  if (s.report == nullptr || frame.job.running) return;
  verbs::DeskPanel panel = *state.habits.restore;
  state.habits.restore.reset();
  state.summary_open = panel == verbs::DeskPanel::kOverview;
  state.summary_for = s.tensor;
  state.table.open = panel == verbs::DeskPanel::kTable;
  if (!s.tensor) return;
  if (panel == verbs::DeskPanel::kBytes) show_bytes(frame, state, false);
  if (panel == verbs::DeskPanel::kValues) show_values(frame, state);
}

double stepped_scale(double scale, int direction) {
  constexpr double kSame = 0.01;
  if (direction > 0) {
    auto next = std::upper_bound(kScales.begin(), kScales.end(), scale + kSame);
    return next == kScales.end() ? kScales.back() : *next;
  }
  auto here = std::lower_bound(kScales.begin(), kScales.end(), scale - kSame);
  return here == kScales.begin() ? kScales.front() : *std::prev(here);
}

void tell(const Frame& frame, DeskState& state, std::string text) {
  state.toast = std::move(text);
  state.toast_until = frame.now + 4;
}

void draw_habit_panels(Frame& frame, DeskState& state) {
  follow_report(frame, state);
  if (state.habits.settings_open) draw_settings(frame, state);
  if (state.habits.errors_open) draw_error_meaning(frame, state);
  if (state.habits.expect_open) draw_expectation(frame, state);
  if (state.habits.report_open) draw_report(frame, state);
}

namespace {

void use_next_theme(Frame& frame, DeskState& state) {
  auto next =
      (static_cast<std::size_t>(state.habits.settings.theme) + 1) % verbs::kDeskThemes.size();
  set_theme(frame, state, verbs::kDeskThemes[next]);
}
template <verbs::DeskTheme kTheme>
void use_theme(Frame& frame, DeskState& state) {
  set_theme(frame, state, kTheme);
}
template <int kDirection>
void step_scale(Frame& frame, DeskState& state) {
  set_scale(frame, state, stepped_scale(state.habits.settings.scale, kDirection));
}

void explain_errors(Frame& /*frame*/, DeskState& state) {
  state.habits.errors_open = state.habits.errors_wanted = true;
}

bool can_report(const Frame& frame, const DeskState& /*state*/) {
  return frame.snapshot.report != nullptr && !frame.job.running;
}
bool can_open_demo(const Frame& frame, const DeskState& state) {
  return !state.habits.cache_folder.empty() && !frame.job.running;
}
bool can_tour(const Frame& frame, const DeskState& state) {
  return tour_is_on(state) || frame.snapshot.report != nullptr || can_open_demo(frame, state);
}

constexpr std::array kHabitRows{
    ActionRow{Action::kSettings, "Settings", ctrl(Key::kComma), always,
              [](Frame&, DeskState& state) { state.habits.settings_open = true; }, Above::kInstead},
    ActionRow{Action::kNextTheme, "Use the next theme", ctrl_shift(Key::kT), always, use_next_theme,
              Above::kEach},
    ActionRow{Action::kDarkTheme,
              "Use the dark theme",
              {},
              always,
              use_theme<verbs::DeskTheme::kDark>,
              Above::kEach},
    ActionRow{Action::kLightTheme,
              "Use the light theme",
              {},
              always,
              use_theme<verbs::DeskTheme::kLight>,
              Above::kEach},
    ActionRow{Action::kContrastTheme,
              "Use the theme of high contrast",
              {},
              always,
              use_theme<verbs::DeskTheme::kContrast>,
              Above::kEach},
    ActionRow{Action::kScaleUp, "Make everything larger", ctrl(Key::kPlus), always, step_scale<1>,
              Above::kEach},
    ActionRow{Action::kScaleDown, "Make everything smaller", ctrl(Key::kMinus), always,
              step_scale<-1>, Above::kEach},
    ActionRow{Action::kScaleReset, "Make everything of its own size", ctrl(Key::k0), always,
              [](Frame& frame, DeskState& state) { set_scale(frame, state, 1); }, Above::kEach},
    ActionRow{Action::kExplainError, "Explain an error message", shift(Key::kF1), always,
              explain_errors, Above::kInstead},
    ActionRow{Action::kReport, "Write a report of what is on the screen", ctrl_shift(Key::kR),
              can_report, ask_for_report},
    ActionRow{Action::kOpenDemo, "Open the demo", {}, can_open_demo, open_demo},
    ActionRow{Action::kTour, "Lead me around the desk", {Key::kF2}, can_tour, step_tour},
    ActionRow{Action::kExpect, "Say what is expected of it", ctrl(Key::kE), has_checkpoint,
              open_expectation, Above::kInstead},
};

}  // namespace

std::span<const ActionRow> habit_actions() {
  return kHabitRows;
}

}  // namespace shw
