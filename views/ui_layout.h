// Layout of the desktop, computed from the window's size.
//
// The map has priority. Side columns take their fraction of the width. If too little is left for
// the map they become rails, the list first, and open over the map on request.
#pragma once

#include "views/widgets.h"

namespace shw {

struct SideColumn {
  bool wanted = true;   // false: the user made it a rail
  bool peeked = false;  // a rail that is open over the map
  float part = 0;       // of the window's width; 0: default
};
struct UiLayout {
  SideColumn left, right;
};

inline constexpr float kRailWidth = 28;          // units of Frame::px, as for the constants below
inline constexpr float kMinWidthWithList = 520;  // below this width the list becomes a rail
inline constexpr float kMinWidthWithRightColumn =
    400;  // below this width the right column does too
inline constexpr float kMinLeftWidth = 200, kMinRightWidth = 260;

struct Regions {
  Region verdict, left, centre, right, job;
  bool left_rail = false, right_rail = false;
  Region left_rail_column, right_rail_column;  // where an open rail's column is drawn
};
// `above`: height of the area above all regions.
Regions regions_of(ImVec2 size, float scale, float job_height, const UiLayout& layout,
                   float above = 0);

// Opens or closes a column; a column without room opens over the map.
void toggle(SideColumn& column, bool is_rail);
// Closes columns that are open over the map; true if there were any.
bool close_overlay_columns(UiLayout& layout);

}  // namespace shw
