// Panels over the window, and the command palette.
#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>
#include <algorithm>

#include "core/verbs/letters_in_order.h"
#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

bool is_called_so(std::string_view text, std::string_view wanted) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  auto equal = [&](char a, char b) { return lower(a) == lower(b); };
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), equal) != text.end();
}

// Actions whose title contains the typed text, then those with its letters in order: "ctf" finds
// "Colour the tiles by finding". Possible actions come first in both groups.
std::vector<const ActionRow*> matching(const Frame& frame, const UiState& state) {
  std::vector<const ActionRow*> rows;
  std::string letters = state.palette_text;
  std::erase(letters, ' ');
  for (bool called : {true, false}) {
    auto first = static_cast<std::ptrdiff_t>(rows.size());
    for (const ActionRow& row : all_actions()) {
      if (row.action == Action::kPalette) continue;
      bool is_called = is_called_so(row.name, state.palette_text);
      if (called ? is_called : !is_called && has_letters_in_order(row.name, letters))
        rows.push_back(&row);
    }
    std::stable_partition(rows.begin() + first, rows.end(), [&](const ActionRow* row) {
      return is_possible(row->action, frame, state);
    });
  }
  return rows;
}

}  // namespace

bool begin_overlay(Frame& frame, const char* id, ImVec2 size, Column& column) {
  ImVec2 screen = ImGui::GetIO().DisplaySize;
  size.x = std::min(size.x, screen.x - frame.px(16));
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(screen);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, with_alpha(frame.theme.scrim, 0.62f));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2{0, 0});
  ImGui::Begin(id, nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoScrollWithMouse |
                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  if (ImGui::IsWindowAppearing()) ImGui::SetWindowFocus();
  ImVec2 min{std::floor((screen.x - size.x) / 2),
             std::floor(std::max(frame.px(24), (screen.y - size.y) * 0.4f))};
  ImVec2 max{min.x + size.x, min.y + size.y};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(min, max, frame.theme.side, frame.px(8));
  draw->AddRect(min, max, frame.theme.strong_line, frame.px(8));
  column = {draw, min.x + frame.px(24), max.x - frame.px(24), min.y + frame.px(22), max.y};
  bool clicked = ImGui::IsMouseClicked(ImGuiMouseButton_Left) &&
                 !ImGui::IsMouseHoveringRect(min, max) && !ImGui::IsWindowAppearing();
  return !clicked;
}

void end_overlay() {
  ImGui::End();
}

namespace {

constexpr float kPanelButtons = 12 + 30 + 22;  // height below the scrolled content

// Scrolls the focused panel by keys, unless a text field takes them.
void scroll_by_keys(const Frame& frame, const UiState& state, float room) {
  if (state.palette_open || ImGui::GetIO().WantTextInput) return;
  float line = frame.px(40), page = std::max(line, room - line), to = ImGui::GetScrollY();
  for (KeyPress key : frame.keys) {
    if (key.ctrl || key.alt || key.shift) continue;
    if (key.key == Key::kDown) to += line;
    if (key.key == Key::kUp) to -= line;
    if (key.key == Key::kPageDown) to += page;
    if (key.key == Key::kPageUp) to -= page;
    if (key.key == Key::kHome) to = 0;
    if (key.key == Key::kEnd) to = ImGui::GetScrollMaxY();
  }
  to = std::clamp(to, 0.0f, ImGui::GetScrollMaxY());
  if (to != ImGui::GetScrollY()) ImGui::SetScrollY(to);
}

// Moves the selection by keys and wheel and keeps it visible.
std::size_t step_palette(const Frame& frame, UiState& state, std::size_t rows, std::size_t shown) {
  auto last = std::max(0, static_cast<int>(rows) - 1), fits = std::max(1, static_cast<int>(shown));
  int &row = state.palette_row, &first = state.palette_first;
  for (KeyPress key : frame.keys) {
    if (key.key == Key::kDown) ++row;
    if (key.key == Key::kUp) --row;
    if (key.key == Key::kPageDown) row += fits;
    if (key.key == Key::kPageUp) row -= fits;
  }
  row = std::clamp(row, 0, last);
  first = std::clamp(first, std::max(0, row - fits + 1), row);
  if (float wheel = ImGui::GetIO().MouseWheel; wheel != 0) first -= static_cast<int>(wheel * 3);
  first = std::clamp(first, 0, std::max(0, static_cast<int>(rows) - fits));
  row = std::clamp(row, first, std::max(first, std::min(last, first + fits - 1)));
  return static_cast<std::size_t>(first);
}

}  // namespace

bool begin_panel(Frame& frame, const UiState& state, const char* id, float wide, float height,
                 std::string_view title, OverlayPanel& panel) {
  ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImVec2 size{std::min(frame.px(wide), screen.x - frame.px(32)),
              std::min(std::max(height, frame.px(120)), screen.y - frame.px(48))};
  Column& all = panel.all;
  bool open = begin_overlay(frame, id, size, all);
  paragraph(frame, all, frame.fonts.title, frame.theme.text, title);
  all.y += frame.px(6);
  float below = frame.px(kPanelButtons);
  Region region{{all.left, all.y}, {all.right + frame.px(14), all.bottom - below}};
  panel.around = size.y - (region.max.y - region.min.y);
  begin_region(frame, "content", region, frame.theme.side, true);
  scroll_by_keys(frame, state, region.max.y - region.min.y);
  panel.first = region.min.y - ImGui::GetScrollY();
  panel.content = {ImGui::GetWindowDrawList(), all.left, all.right, panel.first, region.max.y};
  return open;
}

float end_panel_content(Frame& frame, OverlayPanel& panel) {
  float wants = panel.around + panel.content.y - panel.first + frame.px(16);
  close_column(frame, panel.content);
  bool scrolls = ImGui::GetScrollMaxY() > 0;
  end_region();
  // A fade shows that the content continues below.
  float edge = panel.all.bottom - frame.px(kPanelButtons);
  if (scrolls)
    panel.all.draw->AddLine({panel.all.left, edge}, {panel.all.right + frame.px(14), edge},
                            frame.theme.strong_line);
  panel.all.y = panel.all.bottom - frame.px(kPanelButtons - 12);
  return wants;
}

void draw_palette(Frame& frame, UiState& state) {
  Column column;
  auto rows = matching(frame, state);
  float line = frame.px(28);
  // As many rows as fit, so that the selected one stays visible.
  float room = (ImGui::GetIO().DisplaySize.y - frame.px(96 + 48)) / line;
  auto fits = static_cast<std::size_t>(std::clamp(room, 3.0f, 16.0f));
  std::size_t shown = std::min(rows.size(), fits);
  if (!begin_overlay(frame, "##palette",
                     {frame.px(560), frame.px(96) + line * static_cast<float>(fits)}, column))
    state.palette_open = false;
  push_font(frame.fonts.text);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2{frame.px(10), frame.px(7)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, frame.theme.field);
  ImGui::SetCursorScreenPos({column.left, column.y});
  ImGui::SetNextItemWidth(column.width());
  if (state.palette_wanted) ImGui::SetKeyboardFocusHere();
  state.palette_wanted = false;
  if (ImGui::InputTextWithHint("##command", "What do you want to do?", &state.palette_text))
    state.palette_row = state.palette_first = 0;
  mark(frame, "palette/text");
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  column.y += frame.px(44);
  std::size_t first = step_palette(frame, state, rows.size(), shown);
  std::optional<Action> chosen;
  if (rows.empty())
    text_from(column.draw, frame.fonts.small, column.left, column.y + line / 2, frame.theme.quiet,
              "No command is called so. F1 explains a finding, Ctrl+F looks for tensors.");
  for (std::size_t i = first; i < first + shown; ++i) {
    ImVec2 min{column.left - frame.px(8), column.y},
        max{column.right + frame.px(8), column.y + line};
    ImGui::SetCursorScreenPos(min);
    ImGui::PushID(static_cast<int>(i));
    bool clicked = ImGui::InvisibleButton("command", {max.x - min.x, line});
    bool possible = is_possible(rows[i]->action, frame, state);
    if (static_cast<int>(i) == state.palette_row || ImGui::IsItemHovered())
      column.draw->AddRectFilled(min, max, frame.theme.selected, frame.px(4));
    Rgba colour = possible ? frame.theme.text : frame.theme.head;
    text_from(column.draw, frame.fonts.small, column.left, column.y + line / 2, colour,
              rows[i]->name);
    std::string key = rows[i]->key.key == Key::kNone ? "" : to_text(rows[i]->key);
    text_until(column.draw, frame.fonts.mono_small, column.right, column.y + line / 2,
               frame.theme.quiet, key);
    mark(frame, std::string("palette/") + rows[i]->name);
    ImGui::PopID();
    bool enter = static_cast<int>(i) == state.palette_row && frame.pressed({Key::kEnter});
    if (possible && (clicked || enter)) chosen = rows[i]->action;
    column.y += line;
  }
  if (shown < rows.size())
    text_from(column.draw, frame.fonts.small, column.left, column.y + frame.px(13),
              frame.theme.quiet,
              fmt::format("{} to {} of {}", first + 1, first + shown, rows.size()));
  end_overlay();
  if (chosen) choose(*chosen, frame, state);
}

}  // namespace shw
