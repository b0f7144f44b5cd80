// Controls: what a click, Space or Tab reaches. Each one needs a tip, so that a control without a
// tooltip cannot be written; views make none with imgui itself, which a test holds.
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

// What a control does, and its key. A parameter only: it keeps references to what it was made of.
class Tip {
 public:
  Tip(Action action) : action_(action) {}  // the action's name and key
  Tip(std::string_view words) : words_(words) {}
  Tip(const char* words) : words_(words) {}
  Tip(const std::string& words) : words_(words) {}
  // The words, then the key of the action.
  Tip(std::string_view words, Action key) : words_(words), action_(key) {}
  // Text that is made only while the mouse is over the control.
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

// Shows the tip where the mouse is over the last item.
void show_tip(Frame& frame, const Tip& tip);

// A rectangle at the cursor that can be clicked; its look is the caller's.
bool control(Frame& frame, std::string_view id, ImVec2 size, const Tip& tip);
// A row of a list: Tab reaches one row of a list, the chosen one, and arrows reach the others.
// `name` names it in tests.
bool row_control(Frame& frame, const char* id, std::string_view name, ImVec2 size, bool is_chosen,
                 const Tip& tip);
// A picture whose tooltip the caller draws, because it says what is under the mouse. True if the
// mouse clicked it; `by_key`: Space did, which knows no place.
bool picture_control(Frame& frame, std::string_view id, ImVec2 size, bool* by_key = nullptr);
// The mouse is over the last item. imgui calls an item hovered as well if Tab came to it.
bool mouse_is_over();

enum class ButtonStyle { kPlain, kPrimary, kQuiet };
// `at` is the upper left corner; the label determines the size.
bool button(Frame& frame, const char* id, std::string_view label, const Tip& tip, ImVec2 at,
            ButtonStyle style = ButtonStyle::kPlain);
ImVec2 button_size(const Frame& frame, std::string_view label);
// A chip that can be clicked.
bool chip_button(Frame& frame, const char* id, float x, float middle, std::string_view text,
                 float* width, const Tip& tip);

// What happens at the next text input: it takes the keyboard.
struct InputLook {
  const char* hint = "";
  ImGuiInputTextFlags flags = 0;
  ImGuiInputTextCallback callback = nullptr;
  void* user = nullptr;
  bool tip_by_mouse_only = false;  // where the tip would cover what the keys choose
};
// A line of text at the cursor, in the current font and colours.
bool edit_line(Frame& frame, const char* id, std::string& text, const InputLook& look,
               const Tip& tip);
bool edit_lines(Frame& frame, const char* id, std::string& text, ImVec2 size, const Tip& tip);
// A text input in the monospaced font. True if Enter was pressed.
bool text_field(Frame& frame, ImDrawList* draw, const char* id, const char* hint, ImVec2 at,
                ImVec2 size, std::string& text, const Tip& tip);
// An entry of a menu.
bool menu_entry(Frame& frame, std::string_view name, const char* label, bool is_chosen,
                const Tip& tip);

}  // namespace shw
