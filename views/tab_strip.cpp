// The tab strip, visible if there are several tabs, and its actions.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/io/path_suffix.h"
#include "views/action_rows.h"
#include "views/actions.h"
#include "views/panels/browser.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::string part;
  for (char c : path + "/") {
    if (c != '/') {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, {}));
    }
  }
  return parts;
}

std::string last_parts(const std::vector<std::string>& parts, std::size_t count) {
  std::string name;
  for (std::size_t p = parts.size() - std::min(count, parts.size()); p < parts.size(); ++p)
    name += (name.empty() ? "" : "/") + parts[p];
  return name;
}

float tab_width(const Frame& frame, Region strip, std::size_t tabs) {
  const float plus = frame.px(40);
  const float all = strip.max.x - strip.min.x - plus;
  return std::floor(std::min(frame.px(240), all / static_cast<float>(tabs)));
}

void ask(Frame& frame, TabRequest::Kind kind, std::size_t tab) {
  frame.tab_request = TabRequest{kind, tab};
}

void draw_cross(ImDrawList* draw, ImVec2 middle, float arm, float thick, Rgba colour) {
  draw->AddLine({middle.x - arm, middle.y - arm}, {middle.x + arm, middle.y + arm}, colour, thick);
  draw->AddLine({middle.x - arm, middle.y + arm}, {middle.x + arm, middle.y - arm}, colour, thick);
}

// Asks in the shown tab before closing; another tab is shown first for that.
void close_tab(Frame& frame, UiState& state, std::size_t at) {
  if (at == frame.open_tabs->shown)
    request_action(Action::kCloseTab, frame, state);
  else
    ask(frame, TabRequest::Kind::kClose, at);
}

// The close button of a tab; returns its left end.
float draw_close(Frame& frame, UiState& state, std::size_t at, ImVec2 min, ImVec2 max) {
  const float side = frame.px(22);
  const ImVec2 middle{max.x - frame.px(6) - side / 2, std::floor((min.y + max.y) / 2)};
  ImGui::SetCursorScreenPos({middle.x - side / 2, middle.y - side / 2});
  const std::string id = fmt::format("tabs/{}/close", at);
  if (control(frame, id, {side, side}, "Closes this tab. The checkpoint stays as it is."))
    close_tab(frame, state, at);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const bool hovered = ImGui::IsItemHovered();
  if (hovered)
    draw->AddRectFilled({middle.x - side / 2, middle.y - side / 2},
                        {middle.x + side / 2, middle.y + side / 2}, frame.theme.selected,
                        frame.px(4));
  draw_cross(draw, middle, frame.px(4), frame.px(1.3f),
             hovered ? frame.theme.text : frame.theme.quiet);
  focus_ring(frame, draw);
  return middle.x - side / 2;
}

void draw_tab(Frame& frame, UiState& state, std::size_t at, const std::string& name, ImVec2 min,
              ImVec2 max) {
  const OpenTab& tab = frame.open_tabs->tabs[at];
  const bool is_shown = at == frame.open_tabs->shown;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (is_shown) draw->AddRectFilled(min, max, frame.theme.background);
  const float right = draw_close(frame, state, at, min, max) - frame.px(4);
  ImGui::SetCursorScreenPos(min);
  const auto tip = [&] {
    const std::string where = tab.path.empty() ? "Nothing is open in this tab." : tab.path;
    return printable(where) + (tab.verdict.empty() ? "" : "\n" + tab.verdict);
  };
  const std::string id = fmt::format("tabs/{}", at);
  if (control(frame, id, {right - min.x, max.y - min.y}, tip))
    ask(frame, TabRequest::Kind::kShow, at);
  if (ImGui::IsItemClicked(ImGuiMouseButton_Middle)) close_tab(frame, state, at);
  if (!is_shown && ImGui::IsItemHovered())
    draw->AddRectFilled(min, {right, max.y}, frame.theme.selected);
  const float middle = std::floor((min.y + max.y) / 2);
  float x = min.x + frame.px(12);
  draw_sign(frame, draw, {x + frame.px(6), middle}, frame.px(6), sign_of(tab.tone));
  x += frame.px(20);
  const Measure small = measure_with(frame.fonts.small);
  const std::string said = tab.runs ? name + ", working" : name;
  text_from(draw, frame.fonts.small, x, middle, is_shown ? frame.theme.text : frame.theme.quiet,
            elide_middle(said, right - x, small));
  focus_ring(frame, draw);
  draw->AddLine({max.x - 1, min.y}, max, frame.theme.line);
}

void draw_plus(Frame& frame, UiState& state, ImVec2 min, ImVec2 max) {
  ImGui::SetCursorScreenPos(min);
  if (control(frame, "tabs/new", {max.x - min.x, max.y - min.y}, Action::kOpenInTab))
    request_action(Action::kOpenInTab, frame, state);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec2 middle{std::floor((min.x + max.x) / 2), std::floor((min.y + max.y) / 2)};
  const Rgba colour = ImGui::IsItemHovered() ? frame.theme.text : frame.theme.quiet;
  const float arm = frame.px(5), thick = frame.px(1.3f);
  draw->AddLine({middle.x - arm, middle.y}, {middle.x + arm, middle.y}, colour, thick);
  draw->AddLine({middle.x, middle.y - arm}, {middle.x, middle.y + arm}, colour, thick);
  focus_ring(frame, draw);
}

std::size_t count_of_tabs(const Frame& frame) {
  return frame.open_tabs == nullptr ? 0 : frame.open_tabs->tabs.size();
}
bool can_open_tab(const Frame& frame, const UiState& /*state*/) {
  return count_of_tabs(frame) > 0 && count_of_tabs(frame) < kMaxTabs;
}
bool has_tabs(const Frame& frame, const UiState& /*state*/) {
  return tabs_are_shown(frame);
}
bool can_show_same_tensor(const Frame& frame, const UiState& /*state*/) {
  return tabs_are_shown(frame) && frame.snapshot.tensor.has_value();
}

template <TabRequest::Kind kKind, int kStep>
void step_tab(Frame& frame, UiState& /*state*/) {
  const std::size_t count = count_of_tabs(frame);
  const std::size_t step = kStep > 0 ? 1 : count - 1;
  ask(frame, kKind, (frame.open_tabs->shown + step) % count);
}

void browse_for_tab(Frame& frame, UiState& state) {
  open_browser(frame, state, "");
  state.browser.in_new_tab = true;
}

bool has_reference(const Frame& frame, const UiState& state) {
  return can_open_tab(frame, state) &&
         !(frame.snapshot.options.against.empty() && frame.snapshot.compared_with.empty());
}
void open_reference(Frame& frame, UiState& /*state*/) {
  const Snapshot& s = frame.snapshot;
  OpenCommand open{s.compared_with.empty() ? s.options.against : s.compared_with};
  if (s.tensor) open.tensor = std::string(s.checkpoint->fqn(*s.tensor));
  frame.tab_request = TabRequest{TabRequest::Kind::kNew, 0, std::move(open)};
}

constexpr std::array kTabRows{
    ActionRow{Action::kOpenInTab, "Open a checkpoint in a new tab", ctrl_shift(Key::kO),
              can_open_tab, browse_for_tab, OverlayPolicy::kReplaces},
    ActionRow{Action::kOpenReference,
              "Open what it is compared with in a new tab",
              {},
              has_reference,
              open_reference},
    ActionRow{Action::kNextTab, "Show the next tab", ctrl(Key::kTab), has_tabs,
              step_tab<TabRequest::Kind::kShow, 1>, OverlayPolicy::kAlways},
    ActionRow{Action::kPreviousTab, "Show the previous tab", ctrl_shift(Key::kTab), has_tabs,
              step_tab<TabRequest::Kind::kShow, -1>, OverlayPolicy::kAlways},
    ActionRow{Action::kShowSameTensorInNextTab, "Show this place in the next tab", ctrl(Key::kJ),
              can_show_same_tensor, step_tab<TabRequest::Kind::kShowSame, 1>},
    ActionRow{Action::kCloseTab, "Close this tab", ctrl(Key::kW), has_tabs,
              [](Frame& frame, UiState&) {
                ask(frame, TabRequest::Kind::kClose, frame.open_tabs->shown);
              },
              OverlayPolicy::kAlways, question_before_stopping},
};

}  // namespace

std::vector<std::string> tab_names(const std::vector<OpenTab>& tabs) {
  std::vector<std::vector<std::string>> parts;
  for (const OpenTab& tab : tabs) {
    parts.push_back(parts_of(path_without_suffixes(tab.path)));
    if (!parts.back().empty() && parse_computed_suffix(tab.path))
      parts.back().back() = short_path(tab.path);
  }
  std::vector<std::string> names(tabs.size());
  for (std::size_t t = 0; t < tabs.size(); ++t) {
    if (parts[t].empty()) {
      names[t] = tabs[t].path.empty() ? "nothing open" : tabs[t].path;
      continue;
    }
    auto is_told_apart = [&](std::size_t count) {
      for (std::size_t other = 0; other < tabs.size(); ++other) {
        if (parts[other] != parts[t] &&
            last_parts(parts[other], count) == last_parts(parts[t], count))
          return false;
      }
      return true;
    };
    std::size_t count = 1;
    while (count < parts[t].size() && !is_told_apart(count)) ++count;
    names[t] = printable(last_parts(parts[t], count));
  }
  return names;
}

bool tabs_are_shown(const Frame& frame) {
  return count_of_tabs(frame) > 1;
}

float tab_strip_height(const Frame& frame) {
  return tabs_are_shown(frame) ? frame.px(32) : 0;
}

void draw_tab_strip(Frame& frame, UiState& state, Region region) {
  if (!tabs_are_shown(frame)) return;
  begin_region(frame, "tabs", region, frame.theme.side, false);
  const std::size_t count = count_of_tabs(frame);
  const float width = tab_width(frame, region, count);
  const std::vector<std::string> names = tab_names(frame.open_tabs->tabs);
  float x = region.min.x;
  for (std::size_t t = 0; t < count; ++t, x += width)
    draw_tab(frame, state, t, names[t], {x, region.min.y}, {x + width, region.max.y});
  if (is_possible(Action::kOpenInTab, frame, state))
    draw_plus(frame, state, {x, region.min.y}, {x + frame.px(36), region.max.y});
  ImGui::GetWindowDrawList()->AddLine({region.min.x, region.max.y - 1},
                                      {region.max.x, region.max.y - 1}, frame.theme.line);
  end_region();
}

std::span<const ActionRow> tab_actions() {
  return kTabRows;
}

}  // namespace shw
