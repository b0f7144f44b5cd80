// What the desk can do with itself: its theme, scale and settings, the tour, the report.
#pragma once

#include "views/desk_state.h"

namespace shw {

// Everything that is kept from one day to the next, as it stands now; and the other way round.
verbs::DeskSettings settings_of(const DeskState& state);
void use_settings(DeskState& state, const verbs::DeskSettings& settings);
// The panel that was open when the desk was left, as soon as a tensor is there to show in it.
void restore_panel(Frame& frame, DeskState& state);

// The next of the steps from 100 to 300 percent.
double stepped_scale(double scale, int direction);

// Says it in the bar below for some seconds.
void tell(const Frame& frame, DeskState& state, std::string text);

// Those of its panels that are open.
void draw_habit_panels(Frame& frame, DeskState& state);

// The demo in a folder of the program's own, and the tour (tour.cpp).
void open_demo(Frame& frame, DeskState& state);
// Begins it, or goes to its next step.
void step_tour(Frame& frame, DeskState& state);
bool tour_is_on(const DeskState& state);
void leave_tour(DeskState& state);
void draw_tour(Frame& frame, DeskState& state);

void draw_settings(Frame& frame, DeskState& state);
// What it is held against (expect_panel.cpp).
void open_expectation(Frame& frame, DeskState& state);
void draw_expectation(Frame& frame, DeskState& state);
// What an error message can mean (explain_panel.cpp).
void draw_error_meaning(Frame& frame, DeskState& state);
// The report of what is on the screen (report_panel.cpp).
void ask_for_report(Frame& frame, DeskState& state);
void follow_report(Frame& frame, DeskState& state);
void draw_report(Frame& frame, DeskState& state);

}  // namespace shw
