// Handles of the side columns: splitters, collapsed rails, and collapse buttons.
#pragma once

#include "views/ui_layout.h"

namespace shw {

// Draws handles and rails; call after the regions, because they are on top.
void draw_splitters(Frame& frame, UiLayout& layout, const Regions& regions);
void draw_rail(Frame& frame, const char* id, Region region, SideColumn& column, bool is_left);
// The button that collapses an open column into a rail, with its right end at `right`.
void draw_collapse(Frame& frame, const char* id, SideColumn& column, float right, float middle,
                   bool is_left);

}  // namespace shw
