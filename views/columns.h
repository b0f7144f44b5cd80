// The handles of the side columns: splitters, rails, and the signs that make a column a rail.
#pragma once

#include "views/desk_layout.h"

namespace shw {

// Handles and rails, drawn after the regions so that they lie above them.
void draw_splitters(Frame& frame, DeskLayout& layout, const Regions& regions);
void draw_rail(Frame& frame, const char* id, Region region, SideColumn& column, bool is_left);
// The sign that makes an open column a rail, `right` being its right end.
void draw_collapse(Frame& frame, const char* id, SideColumn& column, float right, float middle,
                   bool is_left);

}  // namespace shw
