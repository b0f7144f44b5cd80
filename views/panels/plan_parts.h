// The sections of the repair panel, from top to bottom.
#pragma once

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// All steps with switches, tensors and losses.
void draw_plan_steps(Frame& frame, UiState& state, Column& column);
// Steps and notes of a plan that writes another form.
void draw_plan_form(Frame& frame, Column& column);
// Findings that the plan does not repair.
void draw_unrepaired_findings(Frame& frame, Column& column);
// Undo and redo buttons.
void draw_plan_history(Frame& frame, UiState& state, Column& column);
// The plan as editable text, with load and save.
void draw_plan_text(Frame& frame, UiState& state, Column& column);
void draw_plan_error(Frame& frame, Column& column, const Error& error);
// The output folder: its path, existing contents and needed space.
void draw_plan_target(Frame& frame, UiState& state, Column& column);

}  // namespace shw
