// The panel that opens checkpoints: a path field with completion, the folder's contents, and recent
// checkpoints.
#pragma once

#include "views/ui_state.h"

namespace shw {

void draw_browser(Frame& frame, UiState& state);
// A row of the list of recent checkpoints: path, verdict and the text `said`.
void draw_recent(Frame& frame, ImDrawList* draw, const verbs::RecentPlace& recent,
                 const std::string& said, ImVec2 min, ImVec2 max);
// Shows a folder; empty: the folder of the open checkpoint.
void open_browser(Frame& frame, UiState& state, std::string folder);
// Opens the browser to select a checkpoint for a comparison.
void browse_to_compare(Frame& frame, UiState& state);
// Reopens a recent checkpoint with the references that were given then.
OpenCommand reopen_recent_command(const verbs::RecentPlace& recent);
void open_place(Frame& frame, UiState& state, OpenCommand what);
// Handles a path dropped onto the window: opens a checkpoint, browses a folder. Requests a listing
// to decide.
void handle_dropped_path(Frame& frame, UiState& state);

// Splits "/runs/7/st" into "/runs/7/" and "st".
std::pair<std::string, std::string> split_typed_path(const std::string& text);
// The longest common prefix of the names.
std::string common_prefix(const std::vector<std::string_view>& names);

}  // namespace shw
