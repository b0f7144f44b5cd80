// Controls: everything that a click, Space or Tab reaches. Each needs a Tip, so that none lacks a
// tooltip; views must not create imgui controls directly, which a test checks.
#pragma once

#include <imgui.h>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "views/frame.h"

namespace shw {

enum class Action : std::uint8_t;  // views/action.h

// Text of a control and its key. Use it only as a parameter: it keeps references to its arguments.
class Tip {
 public:
  Tip(Action action) : action_(action) {}  // the action's name and key
  Tip(std::string_view words) : words_(words) {}
  Tip(const char* words) : words_(words) {}
  Tip(const std::string& words) : words_(words) {}
  // `words`, followed by the key of the action.
  Tip(std::string_view words, Action key) : words_(words), action_(key) {}
  // Text that is computed only while the mouse is over the control.
  template <class Make>
  requires std::convertible_to<std::invoke_result_t<const Make&>, std::string> Tip(const Make& make)
      : maker_(&make),
        make_([](const void* from) -> std::string { return (*static_cast<const Make*>(from))(); }) {
  }
  std::string text() const;

 private:
  std::string_view words_;
  std::optional<Action> action_;
  const void* maker_ = nullptr;
  std::string (*make_)(const void*) = nullptr;
};

// Shows the tip if the mouse is over the last item.
void show_tip(Frame& frame, const Tip& tip);

// A clickable rectangle at the cursor; the caller draws it.
bool control(Frame& frame, std::string_view id, ImVec2 size, const Tip& tip);
// A row of a list. Tab reaches only the chosen row of a list, and arrow keys reach the others.
// `name` identifies it in tests.
bool row_control(Frame& frame, const char* id, std::string_view name, ImVec2 size, bool is_chosen,
                 const Tip& tip);
// A picture with a tooltip drawn by the caller, because it depends on the mouse position. True if
// clicked; `by_key` is set if Space was pressed, which has no position.
bool picture_control(Frame& frame, std::string_view id, ImVec2 size, bool* by_key = nullptr);
// True if the mouse is over the last item. imgui calls an item hovered also after Tab.
bool mouse_is_over();

enum class ButtonStyle { kPlain, kPrimary, kQuiet };
// `at` is the upper left corner; the label determines the size.
bool button(Frame& frame, const char* id, std::string_view label, const Tip& tip, ImVec2 at,
            ButtonStyle style = ButtonStyle::kPlain);
ImVec2 button_size(const Frame& frame, std::string_view label);
// A clickable chip.
bool chip_button(Frame& frame, const char* id, float x, float middle, std::string_view text,
                 float* width, const Tip& tip);

// Underlined text that can be clicked; `at` is its upper left corner.
bool text_link(Frame& frame, const char* id, std::string_view text, const Tip& tip, ImVec2 at);

// Options of a text input.
struct InputStyle {
  const char* hint = "";
  ImGuiInputTextFlags flags = 0;
  ImGuiInputTextCallback callback = nullptr;
  void* user = nullptr;
  bool shows_tip_by_mouse_only = false;  // the tip would cover what the keys select
};
// A line of text at the cursor, in the current font and colours.
bool edit_line(Frame& frame, const char* id, std::string& text, const InputStyle& look,
               const Tip& tip);
bool edit_lines(Frame& frame, const char* id, std::string& text, ImVec2 size, const Tip& tip);
// A monospaced text input. True if Enter was pressed. `selects_all`: what is typed replaces what
// was there, as in a field that is used again and again.
bool text_field(Frame& frame, ImDrawList* draw, const char* id, const char* hint, ImVec2 at,
                ImVec2 size, std::string& text, const Tip& tip, bool selects_all = false);
// An entry of a menu.
bool menu_entry(Frame& frame, std::string_view name, const char* label, bool is_chosen,
                const Tip& tip);

}  // namespace shw
