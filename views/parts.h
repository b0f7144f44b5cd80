// The regions of the window, one file each.
#pragma once

#include "views/controls.h"
#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// Height and visibility of the tab strip; hidden for a single tab.
bool tabs_are_shown(const Frame& frame);
float tab_strip_height(const Frame& frame);
void draw_tab_strip(Frame& frame, UiState& state, Region region);
void draw_verdict_bar(Frame& frame, UiState& state, Region region);
void draw_left(Frame& frame, UiState& state, Region region);
void draw_list(Frame& frame, UiState& state, Region region);
// Moves the selection by keys as draw_list() does, where the column of the list is folded away.
void move_in_hidden_list(Frame& frame, UiState& state);
// The mark of a tensor's worst finding (Digest::marks).
void draw_mark(Frame& frame, ImVec2 at, std::uint8_t mark);
// Marks the cell of a rank whose tiles cannot all be read: a red frame, and a bar below.
void draw_damaged_rank(Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max);
// Rows to move by this frame's keys; 0 if a panel or a field has the keyboard.
int rows_to_move(const Frame& frame, const UiState& state, std::uint32_t rows, int page);
void draw_tensor(Frame& frame, UiState& state, Region region);
// Summary of the checkpoint, shown if no tensor is selected.
// `room`: pixels that all of them may fill; 0: as few as they need.
void draw_matrices(Frame& frame, UiState& state, Column& column, float room);
void draw_file_shares(Frame& frame, UiState& state, Column& column);
void draw_summary(Frame& frame, UiState& state, Region region);
void draw_inspector(Frame& frame, UiState& state, Region region);
void draw_compare(Frame& frame, UiState& state, Region region);
// The card of an unfinished repair, above the status bar; height 0: there is none.
float stopped_card_height(const Frame& frame);
void draw_stopped_card(Frame& frame, UiState& state, Region region);
// Notices above the job bar, which begins at `bottom`: toasts and failures that it does not show.
void draw_notices(Frame& frame, UiState& state, float bottom);
// The text of a failed request, in the terms of the window.
std::string failure_text(const Error& error);
// True if the user has hidden the last failure.
bool is_dismissed(const Snapshot& snapshot, const UiState& state);
// True if the job bar shows a failed or cancelled request.
bool bar_shows_error(const Frame& frame, const UiState& state);
// Hides the last failure until the next one.
bool dismiss_button(Frame& frame, UiState& state, const char* id, ImVec2 middle);
float job_bar_height(const Frame& frame);
// What stopping the job leaves, as the end of a sentence.
const char* stop_consequence_text(const JobState& job);
// True if closing the window or the tab asks about the job: it writes, or has read for a while.
bool is_asked_before_stopping(const JobState& job);
void draw_job_bar(Frame& frame, UiState& state, Region region);
void draw_welcome(Frame& frame, UiState& state, Region region);
// The steps of a run, if its folder was opened.
bool run_is_shown(const Snapshot& snapshot);
void draw_run(Frame& frame, UiState& state, Region region);
void draw_open_error(Frame& frame, UiState& state, Region region);

// The menu for a right click on a tile or a row.
void draw_context_menu(Frame& frame, UiState& state);

// Drawn on top of the regions.
void draw_plan_panel(Frame& frame, UiState& state);
void draw_certificate(Frame& frame, UiState& state);
void draw_explain(Frame& frame, UiState& state);
void draw_mesh_panel(Frame& frame, UiState& state);
void draw_palette(Frame& frame, UiState& state);
// Dims the window and opens a centred panel; false if closed by a click outside or by Escape. Call
// end_overlay in both cases.
bool begin_overlay(Frame& frame, const char* id, ImVec2 size, Column& column);
void end_overlay();
// A panel whose content scrolls if the window is too low; title and buttons stay in
// place.
struct OverlayPanel {
  Column all, content;
  float around = 0, first = 0;  // height around the content, and the content's begin
};
// The question of state.asked with two buttons; no key answers it with yes.
void draw_question(Frame& frame, UiState& state);

// `height`: content height of the last frame. False: closed, as in begin_overlay.
bool begin_panel(Frame& frame, const UiState& state, const char* id, float wide, float height,
                 std::string_view title, OverlayPanel& panel);
// Returns the content height; `all.y` is the position of the buttons. end_overlay() must follow.
float end_panel_content(Frame& frame, OverlayPanel& panel);

}  // namespace shw
