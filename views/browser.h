// The panel that opens checkpoints: a path with completion, what lies in its folder, what was
// opened before.
#pragma once

#include "views/desk_state.h"

namespace shw {

void draw_browser(Frame& frame, DeskState& state);
// One that was opened before, in a row of a list: its path, its verdict and `said` of it.
void draw_recent(Frame& frame, ImDrawList* draw, const verbs::RecentPlace& recent,
                 const std::string& said, ImVec2 min, ImVec2 max);
// At a folder; empty: beside what is open.
void open_browser(Frame& frame, DeskState& state, std::string folder);
// The same, for what is to be held against what is open.
void browse_to_compare(Frame& frame, DeskState& state);
// Opens it and checks it; the list starts anew. Or compares with it, where that was browsed for.
void open_place(Frame& frame, DeskState& state, OpenCommand what);
// What was dropped onto the window: a checkpoint is opened, a folder of them is browsed. Which it
// is is told by the listing that this asks for.
void follow_drop(Frame& frame, DeskState& state);

// Of "/runs/7/st": "/runs/7/" and "st".
std::pair<std::string, std::string> split_typed(const std::string& text);
// As much of a name as all of these begin with.
std::string common_start(const std::vector<std::string_view>& names);

}  // namespace shw
