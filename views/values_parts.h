// What the numbers of one slice, and of two side by side, are drawn with.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

// `id`: what it is called when it is pressed; a click looks closer.
void draw_heat_map(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                   ImVec2 size, const char* id);
void draw_table(Frame& frame, ImDrawList* draw, const verbs::SliceValues& values, ImVec2 at,
                ImVec2 end);
// A, B, and B less A.
void draw_beside(Frame& frame, const ValuesLook& look, Column column, float bottom);

}  // namespace shw
