// One tensor in the centre: how its pictures share the room, and what draws them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "views/desk_state.h"
#include "views/widgets.h"

namespace shw {

struct PanelWish {
  double columns = 1;    // extent drawn across
  float head_width = 0;  // what its title needs
};
// Pixels of one column so that all panels stand side by side at one scale, each at least as wide
// as its title, `gap` between them.
double column_pixels_for(std::span<const PanelWish> panels, float room, float gap);

std::int64_t extent_of(const Extents& shape, int dim);  // 1 where there is no such dim
std::string dim_text(int dim);
// The dims that are neither rows nor columns, the one with the most cuts first.
std::vector<int> other_dims(const Picture& picture, const Slice& slice);

// What stands on a tile while the mouse is over it.
void tile_tooltip(Frame& frame, ChunkId chunk);
// Saved, expected and repaired, side by side (pictures.cpp).
void draw_panels(Frame& frame, ImDrawList* draw, DeskState& state, const Picture& picture,
                 Column& column, float height);
// All its tiles along one more dim (all_tiles.cpp).
void draw_all_tiles(Frame& frame, ImDrawList* draw, DeskState& state, const Picture& picture,
                    Column& column, float height);

}  // namespace shw
