// An overview of all tiles of a tensor along a dim that its pictures do not show; a click moves the
// slice there.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "views/imgui_versions.h"
#include "views/map/tensor_view.h"
#include "views/map/tile_colours.h"
#include "views/map/tile_map.h"
#include "views/text.h"

namespace shw {
namespace {

void draw_strip_head(const Frame& frame, ImDrawList* draw, const TileSet& tiles, const Slice& slice,
                     const Column& column) {
  auto across = static_cast<std::size_t>(slice.column);
  float middle = column.y + frame.px(9);
  float title =
      text_from(draw, frame.fonts.strong, column.left, middle, frame.theme.text, "ALL TILES");
  std::size_t parts = tiles.cuts(across).size();
  std::string caption = dim_text(slice.column) + " across in " + plural(parts, "tile");
  if (parts > 1)
    caption +=
        " of " +
        human_count(static_cast<std::uint64_t>(tiles.cuts(across)[1] - tiles.cuts(across)[0]));
  if (slice.row >= 0) caption += ", " + dim_text(slice.row) + " down";
  float room = column.width() - title - frame.px(12);
  std::string_view more = "; the frame marks where the slice above was taken";
  const Measure small = measure_with(frame.fonts.small);
  if (small(caption + std::string(more)) <= room) caption += more;
  text_from(draw, frame.fonts.small, column.left + title + frame.px(12), middle, frame.theme.quiet,
            elide_end(caption, room, small));
}

// Outlines the tiles of the slice shown above.
void frame_slice(const Frame& frame, ImDrawList* draw, std::span<const std::int64_t> cuts,
                 std::int64_t here, std::int64_t extent, ImVec2 at, const TileView& view) {
  auto after = std::upper_bound(cuts.begin(), cuts.end(), here);
  double from = after == cuts.begin() ? 0 : static_cast<double>(*std::prev(after));
  double to = static_cast<double>(after == cuts.end() ? extent : *after);
  float x0 = at.x + static_cast<float>(from * view.column_pixels);
  float x1 = std::max(x0 + frame.px(3), at.x + static_cast<float>(to * view.column_pixels));
  float out = frame.px(4), end_y = at.y + static_cast<float>(view.height);
  add_frame(draw, {std::floor(x0) - frame.px(1), at.y - out}, {std::floor(x1), end_y + out},
            frame.theme.frame, frame.px(2), frame.px(2));
}

// Axis labels from 0 to the extent, as many as fit.
void draw_ticks(const Frame& frame, ImDrawList* draw, std::int64_t extent, ImVec2 at,
                const TileView& view) {
  const ImFont* font = frame.fonts.mono_small;
  int ticks = static_cast<int>(std::min<std::int64_t>(4, extent));
  float widest = text_width(font, human_count(static_cast<std::uint64_t>(extent))) * 1.5f;
  while (ticks > 1 && static_cast<float>(view.width) / static_cast<float>(ticks) < widest)
    ticks /= 2;
  float y = at.y + static_cast<float>(view.height) + frame.px(15);
  for (int tick = 0; tick <= ticks; ++tick) {
    std::int64_t value = extent * tick / ticks;
    std::string text = human_count(static_cast<std::uint64_t>(value));
    float x = at.x + static_cast<float>(static_cast<double>(value) * view.column_pixels);
    x -= text_width(font, text) * static_cast<float>(tick) / static_cast<float>(ticks);
    text_from(draw, font, x, y, frame.theme.quiet, text);
  }
}

}  // namespace

void draw_all_tiles(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
                    Column& column, float height) {
  const TileSet& tiles = *picture.saved;
  Slice slice = state.map.slice;
  slice.column = other_dims(picture, slice).front();
  auto across = static_cast<std::size_t>(slice.column);
  std::int64_t extent = tiles.shape()[across], rows = extent_of(tiles.shape(), slice.row);
  draw_strip_head(frame, draw, tiles, slice, column);
  ImVec2 at{column.left, column.y + frame.px(28)};
  TileView view{
      0, 0, 1, 1, static_cast<int>(column.width()), static_cast<int>(height - frame.px(28 + 26))};
  if (view.height < 4 || extent < 1) return;
  view.column_pixels = view.width / static_cast<double>(extent);
  view.row_pixels = view.height / static_cast<double>(std::max<std::int64_t>(rows, 1));
  bool clicked = false;
  MapPicture map{"map/all", 2, at, picture.saved, slice, view, false, false, picture.missing};
  map.filled_boxes = picture.filled;
  map.colouring = colouring_of(frame, state);
  map.paint = current_tile_paint(frame, state);
  auto under = draw_map(frame, state, map, &clicked);
  if (under) state.map.hovered = under;
  if (under && !frame.stable && !ImGui::IsItemActive()) tile_tooltip(frame, *under);
  std::int64_t& here = state.map.slice.at[across];
  if (ImGui::IsItemActive()) {
    Element element = element_at(view, ImGui::GetMousePos().x - at.x, 0);
    here = std::clamp<std::int64_t>(element.column, 0, extent - 1);
  }
  frame_slice(frame, draw, tiles.cuts(across), here, extent, at, view);
  draw_ticks(frame, draw, extent, at, view);
  column.take(height);
}

}  // namespace shw
