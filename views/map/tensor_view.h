// The selected tensor in the centre: layout and drawing of its pictures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "views/ui_state.h"
#include "views/widgets.h"

namespace shw {

struct PanelOptions {
  double columns = 1;    // extent of the horizontal dim
  float head_width = 0;  // width of the title
};
// Pixels per column so that all panels fit side by side at one scale, each at least as wide as its
// title, separated by `gap`.
double column_pixels_for(std::span<const PanelOptions> panels, float room, float gap);
// The width in pixels beyond which a zoomed panel is cut off, so that all panels fit and no room
// is left free.
double widest_panel_for(std::span<const PanelOptions> panels, float room, float gap,
                        double column_pixels);

std::int64_t extent_of(const Extents& shape, int dim);  // 1 if there is no such dim
std::string dim_text(int dim);
// The dims that are neither rows nor columns, most splits first.
std::vector<int> other_dims(const Picture& picture, const Slice& slice);

// Highlights the tiles of a rank and goes to one of them; a second time shows all ranks again.
void toggle_isolated_rank(Frame& frame, UiState& state, std::uint32_t rank);

// The name of a tensor with links to its modules and to the checkpoint (breadcrumb.cpp). Returns
// its width, at most `room`.
float draw_breadcrumb(Frame& frame, UiState& state, ImDrawList* draw, std::string_view fqn,
                      ImVec2 at, float room);
// Tooltip of a tile.
void tile_tooltip(Frame& frame, ChunkId chunk);
// Saved, expected and repaired tensor side by side (pictures.cpp).
void draw_panels(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
                 Column& column, float height);
// All tiles along a further dim (all_tiles.cpp).
void draw_all_tiles(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
                    Column& column, float height);

}  // namespace shw
