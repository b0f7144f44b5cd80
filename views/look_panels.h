// What takes the middle of the desktop while somebody looks into files: bytes, values, the table of
// tensors.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

// What was asked for of another checkpoint is no longer waited for.
bool look_is_open(const Frame& frame, DeskState& state);
// The middle where it is wide enough for rows of bytes, else what stands beside it too.
Region look_region(const Frame& frame, Region left, Region centre, Region right);
void draw_look(Frame& frame, DeskState& state, Region region);
void close_looks(Frame& frame, DeskState& state);
// "Show the bytes", as chips below what they are of; the finding's own byte where it names one.
void draw_look_chips(Frame& frame, DeskState& state, Column& column, bool of_finding);

// The bytes of the tile that is looked at, or those that the finding names.
void show_bytes(Frame& frame, DeskState& state, bool of_finding);
void copy_bytes(Frame& frame, DeskState& state);
void draw_bytes(Frame& frame, DeskState& state, Region region);

// The numbers of the slice that the map shows.
void show_values(Frame& frame, DeskState& state);
void draw_values(Frame& frame, DeskState& state, Region region);

// All tensors as a flat table in the place of the map. What looks into files lies above it.
void toggle_table(Frame& frame, DeskState& state);
void draw_tensor_table(Frame& frame, DeskState& state, Region region);

}  // namespace shw
