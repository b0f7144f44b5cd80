#include "views/habits.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "views/actions.h"
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

bool run_habit(Action action, Frame& frame, DeskState& state) {
  HabitsState& habits = state.habits;
  switch (action) {
    case Action::kSettings:
      habits.settings_open = true;
      return true;
    case Action::kNextTheme: {
      auto next = (static_cast<std::size_t>(habits.settings.theme) + 1) % verbs::kDeskThemes.size();
      return set_theme(frame, state, verbs::kDeskThemes[next]), true;
    }
    case Action::kDarkTheme:
      return set_theme(frame, state, verbs::DeskTheme::kDark), true;
    case Action::kLightTheme:
      return set_theme(frame, state, verbs::DeskTheme::kLight), true;
    case Action::kContrastTheme:
      return set_theme(frame, state, verbs::DeskTheme::kContrast), true;
    case Action::kScaleUp:
      return set_scale(frame, state, stepped_scale(habits.settings.scale, 1)), true;
    case Action::kScaleDown:
      return set_scale(frame, state, stepped_scale(habits.settings.scale, -1)), true;
    case Action::kScaleReset:
      return set_scale(frame, state, 1), true;
    case Action::kExplainError:
      habits.errors_open = habits.errors_wanted = true;
      return true;
    case Action::kExpect:
      return open_expectation(frame, state), true;
    case Action::kReport:
      return ask_for_report(frame, state), true;
    case Action::kOpenDemo:
      return open_demo(frame, state), true;
    case Action::kTour:
      return step_tour(frame, state), true;
    default:
      return false;
  }
}

bool changes_looks(Action action) {
  switch (action) {
    case Action::kNextTheme:
    case Action::kDarkTheme:
    case Action::kLightTheme:
    case Action::kContrastTheme:
    case Action::kScaleUp:
    case Action::kScaleDown:
    case Action::kScaleReset:
      return true;
    default:
      return false;
  }
}

std::optional<bool> is_habit_possible(Action action, const Frame& frame, const DeskState& state) {
  if (changes_looks(action)) return true;
  switch (action) {
    case Action::kSettings:
    case Action::kExplainError:
      return true;
    case Action::kExpect:
      return frame.snapshot.checkpoint != nullptr;
    case Action::kReport:
      return frame.snapshot.report != nullptr && !frame.job.running;
    case Action::kOpenDemo:
      return !state.habits.cache_folder.empty() && !frame.job.running;
    case Action::kTour:
      return tour_is_on(state) || frame.snapshot.report != nullptr ||
             (!state.habits.cache_folder.empty() && !frame.job.running);
    default:
      return std::nullopt;
  }
}

void draw_habit_panels(Frame& frame, DeskState& state) {
  follow_report(frame, state);
  if (state.habits.settings_open) draw_settings(frame, state);
  if (state.habits.errors_open) draw_error_meaning(frame, state);
  if (state.habits.expect_open) draw_expectation(frame, state);
  if (state.habits.report_open) draw_report(frame, state);
}

}  // namespace shw
