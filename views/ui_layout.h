// How the desktop is divided: pure arithmetic over the window's size.
//
// The map is what the room is for. The side columns take their part of the width; where too little
// is left for the map they become rails, the list first, and open above the map when asked for.
#pragma once

#include "views/widgets.h"

namespace shw {

struct SideColumn {
  bool wanted = true;   // false: the person made it a rail
  bool peeked = false;  // a rail that is open above the map
  float part = 0;       // of the window's width; 0: the standard one
};
struct UiLayout {
  SideColumn left, right;
};

inline constexpr float kRailWidth = 28;  // units of Frame::px, as all below
inline constexpr float kMapWants = 520;  // less: the list becomes a rail
inline constexpr float kMapLeast = 400;  // less: the right column too
inline constexpr float kLeftLeast = 200, kRightLeast = 260;

struct Regions {
  Region verdict, left, centre, right, job;
  bool left_rail = false, right_rail = false;
  Region left_peek, right_peek;  // where an open rail's column lies
};
// `above`: the height of what stands above all regions.
Regions regions_of(ImVec2 size, float scale, float job_height, const UiLayout& layout,
                   float above = 0);

// Opens or closes a column: one that has no room opens above the map.
void toggle(SideColumn& column, bool is_rail);
// Closes what lies open above the map; true where there was something.
bool close_peeks(UiLayout& layout);

}  // namespace shw
