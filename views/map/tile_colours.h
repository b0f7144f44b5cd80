// The legend of tile colours, and the job that computes statistics for them.
#pragma once

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

// The paint of the tiles; null: by writer, or not yet available.
std::shared_ptr<const TilePaint> current_tile_paint(const Frame& frame, const UiState& state);
void colour_by(Frame& frame, UiState& state, ColourBy by);
// True if the values of all tiles of the selected tensor have been read.
bool are_tile_values_complete(const Snapshot& snapshot);
void request_tile_values(Frame& frame, UiState& state);
// Follows the selection: cancels reads for a tensor that is no longer selected.
void request_or_cancel_tile_values(Frame& frame, UiState& state);
void draw_legend(Frame& frame, UiState& state, Column& column);
// Caption of EXPECTED: the meaning of its colours, or why there are none.
std::string_view expected_map_caption(const UiState& state);
// Text about a tile's values; empty if they have not been read.
std::string tile_values_text(const Frame& frame, ChunkId chunk);

}  // namespace shw
