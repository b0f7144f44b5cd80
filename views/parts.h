// The regions of the desktop, one file each.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

void draw_verdict_bar(Frame& frame, DeskState& state, Region region);
void draw_left(Frame& frame, DeskState& state, Region region);
void draw_list(Frame& frame, DeskState& state, Region region);
// What was found of a tensor, as Digest::marks has it.
void draw_mark(Frame& frame, ImVec2 at, std::uint8_t mark);
// How many rows the keys of this frame go down; 0 where a panel or a field has the keyboard.
int list_steps(const Frame& frame, const DeskState& state, std::uint32_t rows, int page);
void draw_tensor(Frame& frame, DeskState& state, Region region);
// Of the whole checkpoint, in the place of a tensor.
void draw_summary(Frame& frame, DeskState& state, Region region);
void draw_inspector(Frame& frame, DeskState& state, Region region);
void draw_compare(Frame& frame, DeskState& state, Region region);
float job_bar_height(const Frame& frame);
void draw_job_bar(Frame& frame, DeskState& state, Region region);
void draw_welcome(Frame& frame, DeskState& state, Region region);
void draw_open_error(Frame& frame, DeskState& state, Region region);

// What a right click on a tile or a row offers.
void draw_context_menu(Frame& frame, DeskState& state);

// Above the rest.
void draw_plan_panel(Frame& frame, DeskState& state);
void draw_certificate(Frame& frame, DeskState& state);
void draw_explain(Frame& frame, DeskState& state);
void draw_mesh_panel(Frame& frame, DeskState& state);
void draw_palette(Frame& frame, DeskState& state);
// A dimmed desktop and a panel in its middle; false: closed by a click beside it or Escape. Ends
// with end_overlay in either case.
bool begin_overlay(Frame& frame, const char* id, ImVec2 size, Column& column);
void end_overlay();
// One whose middle scrolls where the window is too low for all of it: its title and what there is
// to press stay where they are.
struct OverlayPanel {
  Column all, content;
  float around = 0, first = 0;  // what stands around the content, and where that begins
};
// `height`: what it wanted in the last frame. False: closed, as above.
bool begin_panel(Frame& frame, const DeskState& state, const char* id, float wide, float height,
                 std::string_view title, OverlayPanel& panel);
// What it wants; `all.y` is where its buttons go. end_overlay() is still to come.
float end_panel_content(Frame& frame, OverlayPanel& panel);

}  // namespace shw
