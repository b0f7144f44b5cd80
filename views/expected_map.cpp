// What the spec expects: no tiles, only where they would be cut, and who would hold each part.
#include <algorithm>

#include "views/tile_map.h"

namespace shw {
namespace {

void dashed(ImDrawList* draw, ImVec2 from, ImVec2 to, Rgba colour, float dash, float thick) {
  float length = std::max(to.x - from.x, to.y - from.y);
  ImVec2 way{(to.x - from.x) / length, (to.y - from.y) / length};
  for (float at = 0; at < length; at += 2 * dash) {
    float until = std::min(at + dash, length);
    draw->AddLine({from.x + way.x * at, from.y + way.y * at},
                  {from.x + way.x * until, from.y + way.y * until}, colour, thick);
  }
}

}  // namespace

void draw_expected(Frame& frame, ImDrawList* draw, const Picture& picture, const Slice& slice,
                   ImVec2 at, ImVec2 end, const TileView& view) {
  Rgba line = frame.theme.quiet;
  float dash = frame.px(4), thick = frame.px(1);
  draw->PushClipRect({at.x - 1, at.y - 1}, {end.x + 1, end.y + 1}, true);
  for (auto [from, to] : {std::pair{at, ImVec2{end.x, at.y}}, std::pair{ImVec2{at.x, end.y}, end},
                          std::pair{at, ImVec2{at.x, end.y}}, std::pair{ImVec2{end.x, at.y}, end}})
    dashed(draw, from, to, line, dash, thick);
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
      dashed(draw, {x_of(cut), at.y}, {x_of(cut), end.y}, line, dash, thick);
  }
  if (rows.size() < 256) {
    for (std::int64_t cut : rows)
      dashed(draw, {at.x, y_of(cut)}, {end.x, y_of(cut)}, line, dash, thick);
  }
  // Who holds each part, where one axis cuts one of the two dims.
  int cut_dim = !columns.empty() ? slice.column : slice.row;
  auto cuts = !columns.empty() ? columns : rows;
  if (cut_dim >= 0 && !(columns.size() > 0 && rows.size() > 0) && cuts.size() < 64) {
    const std::string& axis = picture.cut_by[static_cast<std::size_t>(cut_dim)];
    for (std::size_t part = 0; part <= cuts.size(); ++part) {
      std::int64_t from = part == 0 ? 0 : cuts[part - 1];
      std::int64_t to =
          part == cuts.size() ? picture.expected[static_cast<std::size_t>(cut_dim)] : cuts[part];
      std::string text = axis.empty() || axis == "?" ? "" : axis + " " + std::to_string(part);
      float width = text_width(frame.fonts.small, text);
      bool across = !columns.empty();
      float size = across ? x_of(to) - x_of(from) : y_of(to) - y_of(from);
      if (size < (across ? width + frame.px(6) : frame.fonts.small->FontSize)) continue;
      float x = across ? (x_of(from) + x_of(to) - width) / 2 : (at.x + end.x - width) / 2;
      float y = across ? (at.y + end.y) / 2 : (y_of(from) + y_of(to)) / 2;
      text_from(draw, frame.fonts.small, x, y, frame.theme.quiet, text);
    }
  }
  draw->PopClipRect();
}

}  // namespace shw
