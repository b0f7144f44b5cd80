#include "views/controls.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/shown_text.h"
#include "views/widgets.h"

namespace shw {
namespace {

// Records the tips of all controls for tests, not only of those under the mouse: making them all
// costs more than the frame.
void record_tip_for_tests(Frame& frame, std::string_view name, const Tip& tip) {
  if (frame.marks == nullptr) return;
  if (frame.marks->wants_tips) frame.marks->tips[std::string(name)] = tip.text();
  if (ImGui::IsItemFocused()) frame.marks->focused = name;
}

void add_to_tab_order(const Frame& frame, ImGuiID id, bool is_text) {
  if (frame.tabs != nullptr) frame.tabs->add(id, is_text);
}

void register_control(Frame& frame, std::string_view id, ImGuiID number, const Tip& tip,
                      bool is_text, bool shows_tip = true) {
  add_to_tab_order(frame, number, is_text);
  mark(frame, id);
  record_tip_for_tests(frame, id, tip);
  if (shows_tip) show_tip(frame, tip);
}

// Gives the keyboard to a text input that Tab has reached.
void focus_input(const Frame& frame, ImGuiID id) {
  if (frame.tabs != nullptr && frame.tabs->must_take_focus_now(id)) ImGui::SetKeyboardFocusHere();
}

}  // namespace

std::string Tip::text() const {
  if (make_ != nullptr) return make_(maker_);
  std::string text(words_);
  if (!action_) return text;
  const ActionRow& row = row_of(*action_);
  if (text.empty()) text = row.name;
  const std::string key = to_text(row.key);
  return key.empty() ? text : text + "  (" + key + ")";
}

bool mouse_is_over() {
  return ImGui::IsItemHovered() &&
         ImGui::IsMouseHoveringRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

void show_tip(Frame& frame, const Tip& tip) {
  if (frame.stable || !ImGui::IsItemHovered()) return;
  if (!mouse_is_over()) {
    // Reached by Tab: the tip is below the control, or above if there is no room, and grows away
    // from the nearer side of the window.
    const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
    const ImVec2 screen = ImGui::GetIO().DisplaySize;
    const bool is_low = max.y + frame.px(80) > screen.y;
    const bool is_right = min.x + max.x > screen.x;
    ImGui::SetNextWindowPos(
        {is_right ? max.x : min.x, is_low ? min.y - frame.px(6) : max.y + frame.px(6)},
        ImGuiCond_Always, {is_right ? 1.0f : 0.0f, is_low ? 1.0f : 0.0f});
  }
  tooltip(frame, tip.text());
}

bool control(Frame& frame, std::string_view id, ImVec2 size, const Tip& tip) {
  const std::string name(id);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), size);
  register_control(frame, id, ImGui::GetID(name.c_str()), tip, false);
  return clicked || (has_ring(frame) && frame.pressed({Key::kEnter}));  // imgui presses by Space
}

bool row_control(Frame& frame, const char* id, std::string_view name, ImVec2 size, bool is_chosen,
                 const Tip& tip) {
  const bool clicked = ImGui::InvisibleButton(id, size);
  if (frame.tabs != nullptr) frame.tabs->add_row(ImGui::GetID(id), is_chosen);
  mark(frame, name);
  record_tip_for_tests(frame, name, tip);
  // With the keyboard the tip would cover the rows below.
  if (mouse_is_over()) show_tip(frame, tip);
  return clicked;
}

bool picture_control(Frame& frame, std::string_view id, ImVec2 size, bool* by_key) {
  const std::string name(id);
  const bool clicked = ImGui::InvisibleButton(name.c_str(), size);
  add_to_tab_order(frame, ImGui::GetID(name.c_str()), false);
  mark(frame, id);
  if (frame.marks != nullptr && ImGui::IsItemFocused()) frame.marks->focused = name;
  const bool is_over = mouse_is_over();
  if (by_key != nullptr) *by_key = clicked && !is_over;
  return clicked && is_over;
}

ImVec2 button_size(const Frame& frame, std::string_view label) {
  return {std::floor(text_width(frame.fonts.small, label)) + frame.px(24), frame.px(30)};
}

bool button(Frame& frame, const char* id, std::string_view label, const Tip& tip, ImVec2 at,
            ButtonStyle style) {
  const Theme& theme = frame.theme;
  ImVec2 size = button_size(frame, label);
  ImGui::SetCursorScreenPos(at);
  bool clicked = control(frame, id, size, tip);
  bool hovered = ImGui::IsItemHovered();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  ImVec2 end{at.x + size.x, at.y + size.y};
  bool primary = style == ButtonStyle::kPrimary;
  Rgba fill = primary   ? (hovered ? mix(theme.accent, theme.text, 0.2f) : theme.accent)
              : hovered ? theme.raised_hover
                        : theme.raised;
  if (style != ButtonStyle::kQuiet || hovered) draw->AddRectFilled(at, end, fill, frame.px(5));
  if (!primary) draw->AddRect(at, end, theme.strong_line, frame.px(5));
  text_from(
      draw, primary ? frame.fonts.strong : frame.fonts.small,
      at.x + (size.x - text_width(primary ? frame.fonts.strong : frame.fonts.small, label)) / 2,
      at.y + size.y / 2, primary ? theme.accent_text : theme.text, label);
  focus_ring(frame, draw);
  return clicked;
}

bool text_link(Frame& frame, const char* id, std::string_view text, const Tip& tip, ImVec2 at) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float middle = at.y + frame.px(11), line = middle + frame.px(9);
  const float width = text_from(draw, frame.fonts.small, at.x, middle, frame.theme.text, text);
  ImGui::SetCursorScreenPos(at);
  const bool clicked = control(frame, id, {std::max(width, 1.0f), frame.px(22)}, tip);
  draw->AddLine({at.x, line}, {at.x + width, line},
                ImGui::IsItemHovered() ? frame.theme.text : frame.theme.line);
  focus_ring(frame, draw);
  return clicked;
}

bool chip_button(Frame& frame, const char* id, float x, float middle, std::string_view text,
                 float* width, const Tip& tip) {
  *width = chip_width(frame, text);
  ImGui::SetCursorScreenPos({x, middle - frame.px(11)});
  bool clicked = control(frame, id, {*width, frame.px(22)}, tip);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  chip(frame, draw, x, middle, text, frame.theme.text);
  if (ImGui::IsItemHovered())
    draw->AddRect({x, middle - frame.px(11)}, {x + *width, middle + frame.px(11)},
                  frame.theme.quiet, frame.px(4));
  focus_ring(frame, draw);
  return clicked;
}

bool edit_line(Frame& frame, const char* id, std::string& text, const InputStyle& look,
               const Tip& tip) {
  const std::string label = std::string("##") + id;
  focus_input(frame, ImGui::GetID(label.c_str()));
  const bool changed = ImGui::InputTextWithHint(label.c_str(), look.hint, &text, look.flags,
                                                look.callback, look.user);
  // Next to a field with text in it, a tip would cover what the user reads.
  const bool is_typing = ImGui::IsItemActive() && !text.empty();
  register_control(frame, id, ImGui::GetID(label.c_str()), tip, true,
                   !is_typing && (!look.shows_tip_by_mouse_only || mouse_is_over()));
  focus_ring(frame, ImGui::GetWindowDrawList());
  return changed;
}

bool edit_lines(Frame& frame, const char* id, std::string& text, ImVec2 size, const Tip& tip) {
  const std::string label = std::string("##") + id;
  focus_input(frame, ImGui::GetID(label.c_str()));
  const bool changed = ImGui::InputTextMultiline(label.c_str(), &text, size);
  register_control(frame, id, ImGui::GetID(label.c_str()), tip, true);
  focus_ring(frame, ImGui::GetWindowDrawList());
  return changed;
}

bool text_field(Frame& frame, ImDrawList* draw, const char* id, const char* hint, ImVec2 at,
                ImVec2 size, std::string& text, const Tip& tip, bool selects_all) {
  ImVec2 end{at.x + size.x, at.y + size.y};
  draw->AddRectFilled(at, end, frame.theme.field, frame.px(5));
  draw->AddRect(at, end, frame.theme.control, frame.px(5));
  push_font(frame.fonts.mono_small);
  std::string buffer;
  shown_text(frame.fonts.mono_small, text, buffer);  // a field shows its text itself
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                      ImVec2{frame.px(12), std::floor((size.y - ImGui::GetFontSize()) / 2)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, IM_COL32_BLACK_TRANS);
  ImGui::SetCursorScreenPos(at);
  ImGui::SetNextItemWidth(size.x);
  InputStyle look;
  look.hint = hint;
  look.flags = ImGuiInputTextFlags_EnterReturnsTrue;
  if (selects_all) look.flags |= ImGuiInputTextFlags_AutoSelectAll;
  bool entered = edit_line(frame, id, text, look, tip);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  return entered;
}

bool menu_entry(Frame& frame, std::string_view name, const char* label, bool is_chosen,
                const Tip& tip) {
  const bool chosen = ImGui::Selectable(label, is_chosen);
  mark(frame, name);
  record_tip_for_tests(frame, name, tip);
  show_tip(frame, tip);
  return chosen;
}

}  // namespace shw
