// The parts of the repair's panel, from top to bottom.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

// Every step with its switch, its tensors and what it loses.
void draw_plan_steps(Frame& frame, DeskState& state, Column& column);
// What stays wrong.
void draw_plan_rest(Frame& frame, Column& column);
// Undo and redo.
void draw_plan_history(Frame& frame, DeskState& state, Column& column);
// The plan as text, saved and loaded.
void draw_plan_text(Frame& frame, DeskState& state, Column& column);
void draw_plan_error(Frame& frame, Column& column, const Error& error);
// Where it goes, what is there already, what it takes.
void draw_plan_target(Frame& frame, DeskState& state, Column& column);

}  // namespace shw
