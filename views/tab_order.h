// Tab and Shift+Tab: every control in reading order. imgui 1.86 reaches text inputs alone, and in
// the order of drawing.
#pragma once

#include <imgui.h>

#include <optional>
#include <vector>

namespace shw {

class TabOrder {
 public:
  // Begins a frame. `steps`: 1 for Tab, -1 for Shift+Tab, 0 for neither.
  void begin(int steps);
  // A panel covers what was drawn before: its controls are out of reach.
  void cover();
  // The last item is a control. Gives it the keyboard if it is its turn.
  void add(ImGuiID id, bool is_text);
  // The last item is a row of a list. All rows of one window take one place, that of the chosen
  // row, or of the first one.
  void add_row(ImGuiID id, bool is_chosen);
  // A text input that has its turn asks for the keyboard before it is drawn.
  bool is_turn_of(ImGuiID id) const { return wanted_ == id; }
  ImGuiID focused() const { return focused_; }
  // The control with the keyboard got it by Tab.
  bool is_reached() const { return reached_ != 0 && reached_ == focused_; }
  ImVec4 focused_box() const { return focused_box_; }         // x0 y0 x1 y1
  const std::vector<ImGuiID>& ids() const { return order_; }  // of the last frame, in order

 private:
  struct Stop {
    ImGuiID id = 0;
    ImVec2 min, max;
    int region = 0;  // controls of one window that are drawn in a row
    bool is_row = false;
  };
  Stop stop_here(ImGuiID id, bool is_row);
  void sort_stops();
  void note_focus(ImGuiID id, bool is_text);

  std::vector<Stop> stops_;
  std::vector<ImGuiID> order_;
  int region_ = 0;
  const void* window_ = nullptr;  // of the last control
  ImGuiID wanted_ = 0, focused_ = 0, focused_before_ = 0, reached_ = 0;
  ImVec4 focused_box_{};
};

}  // namespace shw
