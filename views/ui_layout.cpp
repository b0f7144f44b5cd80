#include "views/ui_layout.h"

#include <algorithm>
#include <cmath>

namespace shw {
namespace {

struct Bounds {
  float part, least, most;  // default, minimum and maximum width
};
constexpr Bounds kLeft{0.222f, 270, 420}, kRight{0.257f, 320, 460};

float width_of(const SideColumn& column, Bounds bounds, float least, float across, float scale) {
  float width = column.part > 0
                    ? std::max(column.part * across, least * scale)
                    : std::clamp(bounds.part * across, bounds.least * scale, bounds.most * scale);
  return std::floor(std::min(width, across - kRailWidth * scale));
}

}  // namespace

Regions regions_of(ImVec2 size, float scale, float job_height, const UiLayout& layout,
                   float above) {
  float top = above + 52 * scale, bottom = std::max(top, size.y - job_height);
  float left = width_of(layout.left, kLeft, kMinLeftWidth * scale, size.x, scale);
  float right = width_of(layout.right, kRight, kMinRightWidth * scale, size.x, scale);
  float rail = std::floor(kRailWidth * scale);
  bool left_rail = !layout.left.wanted, right_rail = !layout.right.wanted;
  auto centre = [&] { return size.x - (left_rail ? rail : left) - (right_rail ? rail : right); };
  if (centre() < kMinWidthWithList * scale) left_rail = true;
  if (centre() < kMinWidthWithRightColumn * scale) right_rail = true;
  float from = left_rail ? rail : left, to = size.x - (right_rail ? rail : right);
  Regions regions{{{0, above}, {size.x, top}},
                  {{0, top}, {from, bottom}},
                  {{from, top}, {to, bottom}},
                  {{to, top}, {size.x, bottom}},
                  {{0, bottom}, size},
                  left_rail,
                  right_rail,
                  {},
                  {}};
  regions.left_rail_column = {{rail, top}, {std::min(rail + left, size.x), bottom}};
  regions.right_rail_column = {{std::max(0.0f, size.x - rail - right), top},
                               {size.x - rail, bottom}};
  return regions;
}

void toggle(SideColumn& column, bool is_rail) {
  if (!is_rail) {
    column.wanted = false;
    return;
  }
  // If there is room again, the column becomes permanent.
  column.wanted = true;
  column.peeked = !column.peeked;
}

bool close_overlay_columns(UiLayout& layout) {
  bool open = layout.left.peeked || layout.right.peeked;
  layout.left.peeked = layout.right.peeked = false;
  return open;
}

}  // namespace shw
