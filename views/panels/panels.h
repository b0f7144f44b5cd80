// Panels that are not about one tensor: settings, tour, spec and reference, pins, "write as", error
// explanation, report.
#pragma once

#include "views/ui_state.h"

namespace shw {

// Conversion between the persistent settings and the current state.
verbs::UiSettings settings_of(const UiState& state);
void apply_settings(UiState& state, const verbs::UiSettings& settings);
// Reopens the panel of the last session once a tensor is selected.
void restore_panel(Frame& frame, UiState& state);

// The next scale between 100 and 300 percent.
double next_scale(double scale, int direction);

// Shows a message in the status bar for some seconds.
void show_toast(const Frame& frame, UiState& state, std::string text);

// Draws those panels that are open: settings, meaning of an error, pins, write, report and so on.
void draw_secondary_panels(Frame& frame, UiState& state);

// Opens the demo checkpoint in the program's cache folder, and the tour (tour.cpp).
void open_demo(Frame& frame, UiState& state);
// Starts the tour or advances it by one step.
void step_tour(Frame& frame, UiState& state);
bool tour_is_on(const UiState& state);
void leave_tour(UiState& state);
void draw_tour(Frame& frame, UiState& state);

void draw_settings(Frame& frame, UiState& state);
// The panel for spec and reference (expect_panel.cpp).
void open_expectation(Frame& frame, UiState& state);
void draw_expectation(Frame& frame, UiState& state);
// The panel of pinned places (pins_panel.cpp).
void open_pins(Frame& frame, UiState& state);
void draw_pins(Frame& frame, UiState& state);
// The panel that writes the checkpoint in another form (write_panel.cpp).
void open_write_panel(Frame& frame, UiState& state);
void draw_write_panel(Frame& frame, UiState& state);
// The panel that explains a pasted error message (explain_panel.cpp).
void draw_error_meaning(Frame& frame, UiState& state);
// The panel that says where a small file goes before it is written (save_panel.cpp).
void open_save_panel(const Frame& frame, UiState& state, verbs::NewFile file);
void draw_save_panel(Frame& frame, UiState& state);
template <verbs::NewFile kFile>
void request_file(Frame& frame, UiState& state) {
  open_save_panel(frame, state, kFile);
}
// The panel that shows a written report (report_panel.cpp). follow_written_files() copies the path
// of a view or of hashes once they exist.
void follow_written_files(const Frame& frame, UiState& state);
void follow_report(Frame& frame, UiState& state);
void draw_report(Frame& frame, UiState& state);

}  // namespace shw
