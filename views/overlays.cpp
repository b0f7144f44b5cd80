// Panels over the window.
#include <imgui.h>
#include <algorithm>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
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
  if (frame.tabs != nullptr) frame.tabs->cover();
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

}  // namespace

bool begin_panel(Frame& frame, const UiState& state, const char* id, float wide, float height,
                 std::string_view title, OverlayPanel& panel) {
  ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImVec2 size{std::min(frame.px(wide), screen.x - frame.px(32)),
              std::min(std::max(height, frame.px(120)), screen.y - frame.px(48))};
  Column& all = panel.all;
  bool open = begin_overlay(frame, id, size, all);
  paragraph(frame, all, frame.fonts.title, frame.theme.text, title, Gap::kSmall);
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
  // A fade indicates that the content continues below.
  float edge = panel.all.bottom - frame.px(kPanelButtons);
  if (scrolls)
    panel.all.draw->AddLine({panel.all.left, edge}, {panel.all.right + frame.px(14), edge},
                            frame.theme.strong_line);
  panel.all.y = panel.all.bottom - frame.px(kPanelButtons - 12);
  return wants;
}

}  // namespace shw
