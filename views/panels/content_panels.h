// Views of file contents that replace the map: bytes, values, tensor
// table.
#pragma once

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// True if a view of file contents is open; closes those of another checkpoint.
bool viewer_is_open(const Frame& frame, UiState& state);
// The centre, extended over the side columns if it is too narrow for rows of bytes.
Region viewer_region(const Frame& frame, Region left, Region centre, Region right);
void draw_viewer(Frame& frame, UiState& state, Region region);
void close_viewers(Frame& frame, UiState& state);
// The "Show the bytes" chips; also the finding's own byte position.
void draw_viewer_chips(Frame& frame, UiState& state, Column& column, bool of_finding);

// Shows the bytes of the selected tile or of the finding.
void show_bytes(Frame& frame, UiState& state, bool of_finding);
void copy_bytes(Frame& frame, UiState& state);
void draw_bytes(Frame& frame, UiState& state, Region region);

// Shows the values of the slice on the map.
void show_values(Frame& frame, UiState& state);
void draw_values(Frame& frame, UiState& state, Region region);

// The map of names between two programs (names_map_panel.cpp). Opens it when a comparison has found
// a new map.
bool names_map_is_open(const Frame& frame, UiState& state);
// Tensors of the shown difference on both sides; null if there is no map or no row for it.
const verbs::PairedTensors* shown_pair(const Frame& frame, const UiState& state);
void draw_names_map(Frame& frame, UiState& state, Region region);
// A button that leads from a finding to the map by which it was found.
void draw_names_chip(Frame& frame, UiState& state, Column& column, const Finding& finding);

// Switches the centre between map and tensor table; views of file contents are drawn above both.
void toggle_table(Frame& frame, UiState& state);
void draw_tensor_table(Frame& frame, UiState& state, Region region);

}  // namespace shw
