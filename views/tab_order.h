// Tab and Shift+Tab move through all controls in reading order. imgui 1.86 reaches only text
// inputs, in drawing order.
#pragma once

#include <imgui.h>

#include <optional>
#include <vector>

namespace shw {

class TabOrder {
 public:
  // Begins a frame. `steps`: 1 for Tab, -1 for Shift+Tab, 0 for neither.
  void begin(int steps);
  // Call when a panel covers everything drawn before: controls below it become unreachable.
  void cover();
  // Registers the last item as a control, and gives it the keyboard if it is next.
  void add(ImGuiID id, bool is_text);
  // Registers the last item as a row of a list. All rows of one window count as one stop: the
  // chosen row, or the first.
  void add_row(ImGuiID id, bool is_chosen);
  // True if a text input must request the keyboard before it is drawn.
  bool must_take_focus_now(ImGuiID id) const { return wanted_ == id; }
  ImGuiID focused() const { return focused_; }
  // True if the focused control was reached by Tab.
  bool is_focused_by_tab() const { return reached_ != 0 && reached_ == focused_; }
  ImVec4 focused_box() const { return focused_box_; }         // x0 y0 x1 y1
  const std::vector<ImGuiID>& ids() const { return order_; }  // in order, of the last frame

 private:
  struct Stop {
    ImGuiID id = 0;
    ImVec2 min, max;
    int region = 0;  // controls that are drawn consecutively in one window
    bool is_row = false;
  };
  Stop make_stop_at_last_item(ImGuiID id, bool is_row);
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
