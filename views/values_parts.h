// Drawing of slice values, for one checkpoint and for two side by side.
#pragma once

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// `id`: name of the item; a click zooms in.
void draw_heat_map(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                   ImVec2 size, const char* id);
void draw_table(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                ImVec2 end);
// The values of A, of B, and B - A.
void draw_side_by_side(Frame& frame, const ValuesLook& look, Column column, float bottom);

}  // namespace shw
