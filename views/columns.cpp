#include "views/columns.h"

#include <algorithm>

#include "views/actions.h"
#include "views/controls.h"

namespace shw {
namespace {

// A chevron in the direction in which the column moves.
void draw_chevron(Frame& frame, ImDrawList* draw, ImVec2 middle, bool to_left, Rgba colour) {
  float s = frame.px(4), way = to_left ? 1.0f : -1.0f;
  draw->AddLine({middle.x + way * s * 0.5f, middle.y - s}, {middle.x - way * s * 0.5f, middle.y},
                colour, frame.px(1.5f));
  draw->AddLine({middle.x - way * s * 0.5f, middle.y}, {middle.x + way * s * 0.5f, middle.y + s},
                colour, frame.px(1.5f));
}

void draw_splitter(Frame& frame, const char* id, float x, Region region, SideColumn& column,
                   float least, float most, bool is_left) {
  float across = ImGui::GetIO().DisplaySize.x;
  Region strip{{x - frame.px(3), region.min.y}, {x + frame.px(3), region.max.y}};
  begin_region(frame, id, strip, 0, false);
  ImGui::SetCursorScreenPos(strip.min);
  control(frame, id, {strip.max.x - strip.min.x, strip.max.y - strip.min.y},
          "Changes the width: drag it, or Left and Right. A double click resets it.");
  bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  auto set_width = [&](float width) {
    column.part = std::clamp(width, least, std::max(least, most)) / across;
  };
  float now = is_left ? x : across - x;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, frame.px(2))) {
    float mouse = ImGui::GetMousePos().x;
    set_width(is_left ? mouse : across - mouse);
  }
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) column.part = 0;
  if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible) {
    float step = frame.px(16) * (is_left ? 1.0f : -1.0f);
    if (frame.pressed({Key::kLeft})) set_width(now - step);
    if (frame.pressed({Key::kRight})) set_width(now + step);
  }
  if (lit) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    ImGui::GetWindowDrawList()->AddRectFilled({x - frame.px(1), region.min.y},
                                              {x + frame.px(1), region.max.y}, frame.theme.quiet);
  }
  focus_ring(frame, ImGui::GetWindowDrawList());
  end_region();
}

}  // namespace

void draw_splitters(Frame& frame, UiLayout& layout, const Regions& regions) {
  float across = ImGui::GetIO().DisplaySize.x;
  float left = regions.left.max.x, right = across - regions.right.min.x;
  if (!regions.left_rail)
    draw_splitter(frame, "split/left", regions.left.max.x, regions.left, layout.left,
                  frame.px(kMinLeftWidth), across - right - frame.px(kMinWidthWithList), true);
  if (!regions.right_rail)
    draw_splitter(
        frame, "split/right", regions.right.min.x, regions.right, layout.right,
        frame.px(kMinRightWidth),
        across - left - frame.px(regions.left_rail ? kMinWidthWithRightColumn : kMinWidthWithList),
        false);
}

void draw_rail(Frame& frame, const char* id, Region region, SideColumn& column, bool is_left) {
  begin_region(frame, id, region, frame.theme.side, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  ImVec2 size{region.max.x - region.min.x, region.max.y - region.min.y};
  ImGui::SetCursorScreenPos(region.min);
  const Action action = is_left ? Action::kLeftColumn : Action::kRightColumn;
  const Tip tip(is_left ? "Shows tensors, mesh and checkpoint." : "Shows findings and the tile.",
                action);
  if (size.x >= 1 && size.y >= 1 && control(frame, id, size, tip)) toggle(column, true);
  bool lit = ImGui::IsItemHovered();
  if (lit) draw->AddRectFilled(region.min, region.max, frame.theme.raised);
  Rgba colour = lit ? frame.theme.text : frame.theme.quiet;
  float x = std::floor((region.min.x + region.max.x) / 2), y = region.min.y + frame.px(20);
  draw_chevron(frame, draw, {x, y}, is_left == column.peeked, colour);
  const ImFont* font = frame.fonts.head;
  y += frame.px(18);
  for (char letter : std::string_view(is_left ? "TENSORS" : "FINDINGS")) {
    std::string_view text(&letter, 1);
    if (y + text_height(font) > region.max.y) break;
    draw_text(draw, font, x - text_width(font, text) / 2, y, colour, text);
    y += std::floor(text_height(font) * 1.05f);
  }
  focus_ring(frame, draw);
  float edge = is_left ? region.max.x - 1 : region.min.x;
  draw->AddLine({edge, region.min.y}, {edge, region.max.y}, frame.theme.line);
  end_region();
}

void draw_collapse(Frame& frame, const char* id, SideColumn& column, float right, float middle,
                   bool is_left) {
  ImGui::SetCursorScreenPos({right - frame.px(18), middle - frame.px(10)});
  const Tip tip("Hides this column.", is_left ? Action::kLeftColumn : Action::kRightColumn);
  if (control(frame, id, {frame.px(20), frame.px(20)}, tip)) {
    if (column.peeked)
      column.peeked = false;
    else
      column.wanted = false;
  }
  bool lit = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  Rgba colour = lit ? frame.theme.text : frame.theme.head;
  draw_chevron(frame, draw, {right - frame.px(8), middle}, is_left, colour);
  // A vertical edge: without it the chevron would look like "next finding".
  float edge = right - frame.px(8) + frame.px(is_left ? -5 : 5);
  draw->AddLine({edge, middle - frame.px(5)}, {edge, middle + frame.px(5)}, colour, frame.px(1.5f));
  focus_ring(frame, draw);
}

}  // namespace shw
