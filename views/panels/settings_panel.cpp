// All persistent settings, and the path of their file.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

// A radio button; the selected one has a tick.
bool choice(Frame& frame, const char* id, std::string_view label, bool chosen, const Tip& tip,
            ImVec2& at) {
  const ImFont* font = frame.fonts.small;
  float height = frame.px(30), width = std::floor(text_width(font, label)) + frame.px(46);
  ImVec2 end{at.x + width, at.y + height};
  ImGui::SetCursorScreenPos(at);
  bool clicked = control(frame, id, {width, height}, tip);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  bool lit = chosen || ImGui::IsItemHovered();
  draw->AddRectFilled(at, end, lit ? frame.theme.selected : frame.theme.raised, frame.px(5));
  draw->AddRect(at, end, chosen ? frame.theme.text : frame.theme.strong_line, frame.px(5));
  ImVec2 middle{at.x + frame.px(17), at.y + height / 2};
  if (chosen) {
    float s = frame.px(4), thick = frame.px(2);
    draw->AddLine({middle.x - s, middle.y}, {middle.x - s * 0.2f, middle.y + s}, frame.theme.text,
                  thick);
    draw->AddLine({middle.x - s * 0.2f, middle.y + s}, {middle.x + s * 1.2f, middle.y - s},
                  frame.theme.text, thick);
  } else {
    draw->AddCircle(middle, frame.px(5), frame.theme.control, 0, frame.px(1.5f));
  }
  text_from(draw, font, at.x + frame.px(32), middle.y, frame.theme.text, label);
  focus_ring(frame, draw);
  at.x = end.x + frame.px(8);
  return clicked;
}

struct ThemeChoice {
  const char* id;
  const char* label;
  verbs::UiTheme theme;
  Action action;
};
constexpr ThemeChoice kThemeChoices[] = {
    {"settings/dark", "Dark", verbs::UiTheme::kDark, Action::kDarkTheme},
    {"settings/light", "Light", verbs::UiTheme::kLight, Action::kLightTheme},
    {"settings/contrast", "High contrast", verbs::UiTheme::kContrast, Action::kContrastTheme}};

std::string keys_of(std::initializer_list<Action> actions) {
  std::string text;
  for (Action action : actions) text += (text.empty() ? "" : "  ") + to_text(key_of(action));
  return text;
}

void draw_theme(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "THEME", keys_of({Action::kNextTheme}));
  ImVec2 at{column.left, column.y};
  for (const ThemeChoice& each : kThemeChoices) {
    float width = text_width(frame.fonts.small, each.label) + frame.px(46);
    if (at.x > column.left && at.x + width > column.right) at = {column.left, at.y + frame.px(38)};
    if (choice(frame, each.id, each.label, state.panel_state.settings.theme == each.theme,
               each.action, at))
      run(each.action, frame, state);
  }
  column.y = at.y + frame.px(38);
  caption(frame, column,
          "Colours of ranks differ in lightness too, and every state has a sign of its own.",
          Gap::kLarge);
}

void draw_scale(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "SCALE",
       keys_of({Action::kScaleDown, Action::kScaleUp, Action::kScaleReset}));
  Line line(frame, column, 30, Gap::kLarge);
  auto step = [&](const char* id, const char* label, Action action) {
    if (line.button(id, label, action)) run(action, frame, state);
  };
  step("settings/smaller", "-", Action::kScaleDown);
  std::string said = fmt::format("{:.0f} %", state.panel_state.settings.scale * 100);
  line.skip(text_width(frame.fonts.mono, "300 %") - text_width(frame.fonts.mono, said));
  line.text(frame.fonts.mono, frame.theme.text, said);
  step("settings/larger", "+", Action::kScaleUp);
  step("settings/standard", "Reset", Action::kScaleReset);
}

std::string width_text(const SideColumn& column) {
  if (!column.wanted) return "hidden";
  return column.part > 0
             ? fmt::format("{:.0f} % of the window", static_cast<double>(column.part * 100))
             : "standard width";
}

void draw_columns_kept(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "WHAT IS REMEMBERED");
  row(frame, column, "list of tensors", width_text(state.layout.left), frame.theme.text);
  row(frame, column, "findings", width_text(state.layout.right), frame.theme.text);
  constexpr const char* kOrders[] = {"as recorded", "by name",  "by bytes", "by tiles",
                                     "by findings", "by shape", "by dtype"};
  static_assert(std::size(kOrders) == static_cast<std::size_t>(SortKey::kDtype) + 1);
  row(frame, column, "order of the list", kOrders[static_cast<std::size_t>(state.sort.key)],
      frame.theme.text);
  gap(frame, column, Gap::kSmall);
  Line line(frame, column, 30, Gap::kLarge);
  if (line.button("settings/reset", "Reset all settings",
                  "Resets theme, scale, columns and order.")) {
    bool seen = state.panel_state.settings.tour_seen;
    apply_settings(state, {});
    state.panel_state.settings.tour_seen = seen;
    frame.emit(state.sort);
    show_toast(frame, state, "All settings are as shipped.");
  }
  if (is_possible(Action::kTour, frame, state) &&
      line.button("settings/tour", "Show the tour", Action::kTour)) {
    state.panel_state.settings_open = false;
    run(Action::kTour, frame, state);
  }
}

void draw_file(Frame& frame, UiState& state, Column& column) {
  const PanelsState& panel_state = state.panel_state;
  head(frame, column, "KEPT IN");
  if (panel_state.settings_file.empty())
    caption(frame, column,
            "Nowhere: neither XDG_CONFIG_HOME nor HOME is set, or a picture is taken. What is "
            "set here ends with the program.");
  else
    row(frame, column, "file", panel_state.settings_file, frame.theme.text);
  auto warn = [&](const std::string& text) {
    if (text.empty()) return;
    gap(frame, column, Gap::kSmall);
    signed_paragraph(frame, column, Sign::kWarn, frame.theme.warn, text);
  };
  if (!panel_state.settings_refused.empty())
    warn("The settings file could not be read: " + panel_state.settings_refused +
         ". It is renamed desk.json.old as soon as a setting changes.");
  if (!panel_state.settings_trouble.empty())
    warn("The settings could not be saved: " + panel_state.settings_trouble);
  gap(frame, column, Gap::kLarge);
}

}  // namespace

void draw_settings(Frame& frame, UiState& state) {
  PanelsState& panel_state = state.panel_state;
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##settings", 560, panel_state.settings_height, "Settings", panel))
    panel_state.settings_open = false;
  gap(frame, panel.content, Gap::kSmall);
  draw_theme(frame, state, panel.content);
  draw_scale(frame, state, panel.content);
  draw_columns_kept(frame, state, panel.content);
  draw_file(frame, state, panel.content);
  panel_state.settings_height = end_panel_content(frame, panel);
  Line line(frame, panel.all);
  if (close_button(line, "settings/close")) panel_state.settings_open = false;
  end_overlay();
}

}  // namespace shw
