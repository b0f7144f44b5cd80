// Draws the expected tensor: split lines, and the rank that should hold each part.
#include <fmt/core.h>

#include <algorithm>

#include "views/map/tile_map.h"

namespace shw {
namespace {

void draw_dashed_line(ImDrawList* draw, ImVec2 from, ImVec2 to, Rgba colour, float dash,
                      float thick) {
  float length = std::max(to.x - from.x, to.y - from.y);
  ImVec2 way{(to.x - from.x) / length, (to.y - from.y) / length};
  for (float at = 0; at < length; at += 2 * dash) {
    float until = std::min(at + dash, length);
    draw->AddLine({from.x + way.x * at, from.y + way.y * at},
                  {from.x + way.x * until, from.y + way.y * until}, colour, thick);
  }
}

// Labels parts with rank and mesh coordinates if the spec's mesh has as many ranks as wrote. A pale
// rank colour connects parts with the other pictures.
void draw_rank_labels(Frame& frame, ImDrawList* draw, const Picture& picture, const Slice& slice,
                      ImVec2 at, const TileView& view, const std::optional<Colouring>& tint) {
  const TileSet& tiles = *picture.expected_tiles;
  if (tiles.size() > 2'048) return;
  MapPicture map{"", 0, at, picture.expected_tiles, slice, view};
  const ImFont *strong = frame.fonts.strong, *small = frame.fonts.small;
  for (std::uint32_t t = 0; t < tiles.size(); ++t) {
    auto box = box_on_screen(map, tiles.offsets(t), tiles.sizes(t));
    if (!box) continue;
    std::uint32_t writer = tiles.writer(t);
    std::string who = writer == kNoWriter ? "" : fmt::format("rank {}", writer);
    std::string where;
    for (const AxisPlace& place : picture.expected_places[t]) {
      if (place.dim == slice.row || place.dim == slice.column)
        where += (where.empty() ? "" : ", ") + place.text;
    }
    if (writer != kNoWriter && tint)
      draw->AddRectFilled({box->x + 1, box->y + 1}, {box->z - 1, box->w - 1},
                          with_alpha(tile_colour(writer, frame.digest.mesh->grid, *tint),
                                     tint->only && *tint->only != writer ? 0.04f : 0.16f));
    float width = box->z - box->x - frame.px(8), height = box->w - box->y - frame.px(4);
    bool who_fits =
        !who.empty() && text_width(strong, who) <= width && text_height(strong) <= height;
    bool where_fits =
        !where.empty() && text_width(small, where) <= width &&
        text_height(small) + (who_fits ? text_height(strong) + frame.px(4) : 0.0f) <= height;
    float x = (box->x + box->z) / 2, y = (box->y + box->w) / 2;
    float shift = who_fits && where_fits ? frame.px(9) : 0;
    if (who_fits)
      text_from(draw, strong, x - text_width(strong, who) / 2, y - shift, frame.theme.quiet, who);
    if (where_fits)
      text_from(draw, small, x - text_width(small, where) / 2, y + shift, frame.theme.quiet, where);
  }
}

}  // namespace

void draw_expected(Frame& frame, ImDrawList* draw, const Picture& picture, const Slice& slice,
                   ImVec2 at, ImVec2 end, const TileView& view,
                   const std::optional<Colouring>& tint) {
  Rgba line = frame.theme.quiet;
  float dash = frame.px(4), thick = frame.px(1);
  draw->PushClipRect({at.x - 1, at.y - 1}, {end.x + 1, end.y + 1}, true);
  for (auto [from, to] : {std::pair{at, ImVec2{end.x, at.y}}, std::pair{ImVec2{at.x, end.y}, end},
                          std::pair{at, ImVec2{at.x, end.y}}, std::pair{ImVec2{end.x, at.y}, end}})
    draw_dashed_line(draw, from, to, line, dash, thick);
  auto cuts_along = [&](int dim) -> std::span<const std::int64_t> {
    if (dim < 0) return {};
    return picture.expected_cuts[static_cast<std::size_t>(dim)];
  };
  auto columns = cuts_along(slice.column), rows = cuts_along(slice.row);
  auto x_of = [&](std::int64_t cut) {
    return at.x +
           static_cast<float>((static_cast<double>(cut) - view.first_column) * view.column_pixels);
  };
  auto y_of = [&](std::int64_t cut) {
    return at.y + static_cast<float>((static_cast<double>(cut) - view.first_row) * view.row_pixels);
  };
  if (columns.size() < 256) {
    for (std::int64_t cut : columns)
      draw_dashed_line(draw, {x_of(cut), at.y}, {x_of(cut), end.y}, line, dash, thick);
  }
  if (rows.size() < 256) {
    for (std::int64_t cut : rows)
      draw_dashed_line(draw, {at.x, y_of(cut)}, {end.x, y_of(cut)}, line, dash, thick);
  }
  if (picture.expected_tiles != nullptr)
    draw_rank_labels(frame, draw, picture, slice, at, view, tint);
  draw->PopClipRect();
}

}  // namespace shw
