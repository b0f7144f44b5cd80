// The legend of the map's colouring, and the job that statistics are taken by.
#pragma once

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

// What the tiles are painted with; null: by writer, or there is nothing to paint with yet.
std::shared_ptr<const TilePaint> paint_of(const Frame& frame, const DeskState& state);
void colour_by(Frame& frame, DeskState& state, ColourBy by);
// Every tile of the selected tensor was looked at.
bool tiles_are_known(const Snapshot& snapshot);
void look_at_tiles(Frame& frame, DeskState& state);
// Follows the selection: what is asked for of a tensor that was left is called off.
void follow_tile_values(Frame& frame, DeskState& state);
void draw_legend(Frame& frame, DeskState& state, Column& column);
// Under EXPECTED: whose colours its parts have, or why they have none.
std::string_view tint_text(const DeskState& state);
// What is known of a tile's values; empty where nobody has looked.
std::string tile_values_text(const Frame& frame, ChunkId chunk);

}  // namespace shw
