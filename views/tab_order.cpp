#include "views/tab_order.h"

#include <algorithm>

namespace shw {

// Sorts by region, then by line, then from left to right: buttons at the right end of a line are
// drawn from right to left.
void TabOrder::sort_stops() {
  auto middle = [](const Stop& stop) { return (stop.min.y + stop.max.y) / 2; };
  std::stable_sort(stops_.begin(), stops_.end(), [&](const Stop& a, const Stop& b) {
    return a.region != b.region ? a.region < b.region : middle(a) < middle(b);
  });
  for (std::size_t first = 0; first < stops_.size();) {
    std::size_t last = first + 1;
    const Stop line = stops_[first];
    while (last < stops_.size() && stops_[last].region == line.region &&
           middle(stops_[last]) < line.max.y)
      ++last;
    std::stable_sort(stops_.begin() + static_cast<std::ptrdiff_t>(first),
                     stops_.begin() + static_cast<std::ptrdiff_t>(last),
                     [](const Stop& a, const Stop& b) { return a.min.x < b.min.x; });
    first = last;
  }
  order_.clear();
  for (const Stop& stop : stops_) order_.push_back(stop.id);
}

void TabOrder::begin(int steps) {
  sort_stops();
  stops_.clear();
  region_ = 0;
  window_ = nullptr;
  focused_before_ = focused_;
  focused_ = 0;
  wanted_ = 0;
  if (steps == 0 || order_.empty()) return;
  auto here = std::find(order_.begin(), order_.end(), focused_before_);
  const auto count = static_cast<int>(order_.size());
  int at =
      here == order_.end() ? (steps > 0 ? -1 : count) : static_cast<int>(here - order_.begin());
  at = (at + steps + count) % count;
  wanted_ = order_[static_cast<std::size_t>(at)];
}

void TabOrder::cover() {
  stops_.clear();
  focused_ = 0;
  window_ = nullptr;
}

void TabOrder::note_focus(ImGuiID id, bool is_text) {
  if (wanted_ == id) {
    if (!is_text) ImGui::SetKeyboardFocusHere(-1);
    wanted_ = 0;
    focused_ = reached_ = id;
  } else if (ImGui::IsItemFocused() && focused_ == 0) {
    focused_ = id;
  }
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  if (focused_ == id) focused_box_ = {min.x, min.y, max.x, max.y};
}

TabOrder::Stop TabOrder::make_stop_at_last_item(ImGuiID id, bool is_row) {
  const void* window = ImGui::GetWindowDrawList();
  if (window != window_) ++region_;
  window_ = window;
  return {id, ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), region_, is_row};
}

void TabOrder::add(ImGuiID id, bool is_text) {
  stops_.push_back(make_stop_at_last_item(id, false));
  note_focus(id, is_text);
}

void TabOrder::add_row(ImGuiID id, bool is_chosen) {
  const Stop stop = make_stop_at_last_item(id, true);
  note_focus(id, false);
  auto other = std::find_if(stops_.begin(), stops_.end(), [&](const Stop& each) {
    return each.is_row && each.region == stop.region;
  });
  if (other == stops_.end())
    stops_.push_back(stop);
  else if (focused_ == id || (is_chosen && other->id != focused_))
    *other = stop;
}

}  // namespace shw
