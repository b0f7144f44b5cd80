// The sections of the repair panel, from top to bottom.
#pragma once

#include <string>

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// The output folder as typed, without blanks around it.
std::string typed_output(const UiState& state);
// What was found out about the output folder that is typed now, for the plan that is shown; null:
// not examined yet.
const verbs::RepairTarget* examined_target(const Frame& frame, const UiState& state);
// True if its bytes fit, as far as they and the free space are known.
bool fits_on_disk(const verbs::RepairTarget& target);
// "10.2 GB", or "at most 10.2 GB".
std::string written_text(const verbs::RepairTarget& target);
// True if a text was typed into the panel that the plan does not contain yet.
bool has_unused_plan_input(const Frame& frame, const UiState& state);
// Why the plan cannot be written into a new folder now; empty: it can.
std::string why_not_applied(const Frame& frame, const UiState& state);
// Forgets what was typed for a plan, once its panel is closed or another checkpoint is open.
void forget_plan_inputs(const Frame& frame, UiState& state);

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
