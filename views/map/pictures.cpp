// The pictures of one tensor side by side at one scale, with axis numbers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "views/imgui_versions.h"
#include "views/map/tensor_view.h"
#include "views/map/tile_colours.h"
#include "views/map/tile_map.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

namespace {

// The greatest value up to `high` at which all panels, each as wide as `width_of` says, fit side
// by side.
template <class WidthOf>
double largest_fitting_scale(std::span<const PanelOptions> panels, float room, float gap,
                             double high, WidthOf width_of) {
  double low = 0;
  for (int step = 0; step < 40; ++step) {
    const double middle = (low + high) / 2;
    double width = panels.empty() ? 0 : gap * static_cast<double>(panels.size() - 1);
    for (const PanelOptions& panel : panels)
      width += std::max(static_cast<double>(panel.head_width), width_of(panel, middle));
    (width <= static_cast<double>(room) ? low : high) = middle;
  }
  return low;
}

}  // namespace

double column_pixels_for(std::span<const PanelOptions> panels, float room, float gap) {
  double most = 1;
  for (const PanelOptions& panel : panels) most = std::max(most, panel.columns);
  return largest_fitting_scale(
      panels, room, gap, std::max(1.0f, room) / most,
      [](const PanelOptions& panel, double pixels) { return panel.columns * pixels; });
}

double widest_panel_for(std::span<const PanelOptions> panels, float room, float gap,
                        double column_pixels) {
  return largest_fitting_scale(panels, room, gap, std::max(1.0f, room),
                               [&](const PanelOptions& panel, double widest) {
                                 return std::min(panel.columns * column_pixels, widest);
                               });
}

void tile_tooltip(Frame& frame, ChunkId chunk) {
  if (frame.snapshot.checkpoint == nullptr ||
      index_of(chunk) >= frame.snapshot.checkpoint->chunk_count())
    return;
  std::string text = tile_text(frame, chunk);
  tooltip(frame, text);
  if (frame.marks != nullptr) frame.marks->tooltip = std::move(text);
}

namespace {

constexpr int kAfterSlot = 1;  // of the layouts

enum class Kind { kSaved, kExpected, kAfter };
struct Panel {
  Kind kind;
  std::string title, caption;
  Extents shape;
  float width = 0;  // of the picture in whole pixels
  float x = 0;
};

std::vector<Panel> map_panels_of(const Frame& frame, const UiState& state, const Picture& picture) {
  const Slice& slice = state.map.slice;
  std::vector<Panel> panels;
  std::string how = slice.row < 0
                        ? dim_text(slice.column) + " across"
                        : dim_text(slice.row) + " down, " + dim_text(slice.column) + " across";
  if (slice.column < 0) how = "one element";
  panels.push_back({Kind::kSaved, "SAVED", how, picture.saved->shape()});
  bool differs = picture.expects && picture.expected.size() == picture.saved->ndim() &&
                 (picture.expected != picture.saved->shape() || picture.after != nullptr);
  if (differs)
    panels.push_back(
        {Kind::kExpected, "EXPECTED", "from " + picture.expected_from, picture.expected});
  if (differs && picture.expected_tiles != nullptr && state.colour_by != ColourBy::kWriter)
    panels.back().caption = expected_map_caption(state);
  else if (picture.expects && picture.expected == picture.saved->shape())
    panels[0].caption += ", as " + picture.expected_from + " expects";
  if (picture.after != nullptr) {
    bool done = is_plan_executed(frame.snapshot);
    panels.push_back({Kind::kAfter,
                      done ? is_repaired_elsewhere(frame.snapshot) ? "REPAIRED COPY" : "REPAIRED"
                           : "AFTER REPAIR",
                      picture.after_text, picture.after->shape()});
  }
  return panels;
}

float head_width(const Frame& frame, const Panel& panel) {
  float title =
      text_width(frame.fonts.strong, panel.title) + frame.px(12) +
      (panel.kind == Kind::kAfter ? 0 : extents_width(frame.fonts.mono_small, panel.shape));
  return std::max(title, text_width(frame.fonts.small, panel.caption));
}

// Wrong numbers are red, numbers that the repair changes are gold.
Rgba number_colour(const Frame& frame, const Picture& picture, const Panel& panel, int dim) {
  bool differs =
      picture.expects && extent_of(picture.saved->shape(), dim) != extent_of(picture.expected, dim);
  if (panel.kind == Kind::kSaved && differs) return frame.theme.bad;
  if (panel.kind == Kind::kAfter && differs) return frame.theme.accent;
  return frame.theme.quiet;
}

// Title, extents and caption in two lines of width `room`; numbers take precedence over the
// caption.
void draw_panel_head(Frame& frame, ImDrawList* draw, const Picture& picture, const Panel& panel,
                     ImVec2 at, float room) {
  auto fit = [](const ImFont* font) {
    return [font](std::string_view t) { return text_width(font, t); };
  };
  const ImFont *mono = frame.fonts.mono_small, *strong = frame.fonts.strong;
  bool after = panel.kind == Kind::kAfter;
  float title = text_from(draw, strong, at.x, at.y + frame.px(9),
                          after ? frame.theme.accent : frame.theme.text,
                          elide_end(panel.title, room, fit(strong)));
  ExtentsView other =
      panel.kind == Kind::kSaved && picture.expects ? ExtentsView(picture.expected) : ExtentsView{};
  float wide = extents_width(mono, panel.shape);
  bool fits_in_row = title + frame.px(12) + wide < room;
  float below = at.y + frame.px(29);
  if (!after && fits_in_row)
    draw_extents(frame, draw, mono, at.x + title + frame.px(12), at.y + frame.px(9), panel.shape,
                 other, frame.theme.text, frame.theme.bad);
  if (!after && !fits_in_row && wide <= room)
    draw_extents(frame, draw, mono, at.x, below, panel.shape, other, frame.theme.text,
                 frame.theme.bad);
  else if (!after && !fits_in_row)  // an elided number would look like another number
    text_from(draw, mono, at.x, below, frame.theme.quiet,
              elide_end(times_text(panel.shape), room, fit(mono)));
  else
    text_from(draw, frame.fonts.small, at.x, below, frame.theme.quiet,
              elide_end(panel.caption, room, fit(frame.fonts.small)));
}

// The visible range of an extent.
struct Seen {
  std::int64_t first = 0, last = 0;
  bool whole = true;
};
Seen visible_part(double first, double pixels, int side, std::int64_t extent) {
  if (!(pixels > 0)) return {0, extent, true};
  double last = first + side / pixels;
  // Picture sides are whole pixels: a partial last pixel counts as visible.
  if (last + 1.5 / pixels >= static_cast<double>(extent)) last = static_cast<double>(extent);
  Seen seen{static_cast<std::int64_t>(std::floor(first + 0.5)),
            static_cast<std::int64_t>(std::floor(last + 0.5))};
  seen.whole = seen.first <= 0 && seen.last >= extent;
  return seen;
}

// The visible range of the columns at the top; row numbers at the right, at the split lines and the
// end.
void draw_numbers(Frame& frame, ImDrawList* draw, const Picture& picture, const Panel& panel,
                  const Slice& slice, ImVec2 at, ImVec2 end, const TileView& view) {
  const ImFont* font = frame.fonts.mono_small;
  if (slice.column >= 0) {
    Seen seen = visible_part(view.first_column, view.column_pixels, view.width,
                             extent_of(panel.shape, slice.column));
    Rgba colour =
        seen.whole ? number_colour(frame, picture, panel, slice.column) : frame.theme.quiet;
    float used =
        draw_text_ending_at(draw, font, std::max(end.x, at.x + frame.px(8)), at.y - frame.px(10),
                            colour, human_count(static_cast<std::uint64_t>(seen.last)));
    std::string first = human_count(static_cast<std::uint64_t>(seen.first));
    if (!seen.whole && text_width(font, first) + used + frame.px(8) < end.x - at.x)
      text_from(draw, font, at.x, at.y - frame.px(10), colour, first);
  }
  if (slice.row < 0) return;
  std::int64_t rows = extent_of(panel.shape, slice.row);
  Seen seen = visible_part(view.first_row, view.row_pixels, view.height, rows);
  float x = end.x + frame.px(8), lowest = 1e9f;
  auto number = [&](std::int64_t value, Rgba colour) {
    float y =
        at.y + static_cast<float>((static_cast<double>(value) - view.first_row) * view.row_pixels);
    if (y < at.y - 1 || y > end.y + 1 || lowest - y < text_height(font)) return;
    lowest = y - (value == seen.last ? frame.px(6) : 0);
    text_from(draw, font, x, lowest, colour, human_count(static_cast<std::uint64_t>(value)));
  };
  number(seen.last,
         seen.whole ? number_colour(frame, picture, panel, slice.row) : frame.theme.quiet);
  const auto& cuts = panel.kind == Kind::kExpected
                         ? picture.expected_cuts[static_cast<std::size_t>(slice.row)]
                         : (panel.kind == Kind::kAfter ? picture.after : picture.saved)
                               ->cuts(static_cast<std::size_t>(slice.row));
  if (cuts.size() <= 64) {
    for (std::size_t c = cuts.size(); c-- > 0;) {
      if (cuts[c] > seen.first && cuts[c] < seen.last) number(cuts[c], frame.theme.quiet);
    }
  }
  if (!seen.whole) number(seen.first, frame.theme.quiet);
}

// The wheel zooms around the mouse, dragging pans. The other pictures follow this one.
void pan_and_zoom(UiState& state, const MapPicture& picture) {
  const ImGuiIO& io = ImGui::GetIO();
  MapState& map = state.map;
  TileView next = picture.view;
  if (ImGui::IsItemHovered() && io.MouseWheel != 0) {
    double factor = std::pow(1.25, static_cast<double>(io.MouseWheel));
    factor = std::clamp(map.zoom * factor, 1.0, 1e7) / map.zoom;
    next = zoomed(next, factor, io.MousePos.x - picture.at.x, io.MousePos.y - picture.at.y);
    map.zoom *= factor;
  }
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    next.first_row -= io.MouseDelta.y / next.row_pixels;
    next.first_column -= io.MouseDelta.x / next.column_pixels;
  }
  if (next == picture.view) return;
  map.pan_row = next.first_row;
  map.pan_column = next.first_column;
  map.leads_after = picture.slot == kAfterSlot;
}

// Zoom overview: the whole tensor with a frame around the visible part.
void draw_minimap(Frame& frame, ImDrawList* draw, const UiState& state, ImVec2 corner,
                  std::int64_t rows, std::int64_t columns, double seen_rows, double seen_columns) {
  std::string text = fmt::format("{:.3g}×", state.map.zoom);
  float wide = frame.px(44), high = frame.px(30);
  ImVec2 min{corner.x - wide, corner.y}, max{corner.x, corner.y + high};
  draw->AddRectFilled(min, max, frame.theme.raised);
  auto along = [](double at, std::int64_t extent, float side) {
    double part = at / static_cast<double>(std::max<std::int64_t>(extent, 1));
    return side * static_cast<float>(std::clamp(part, 0.0, 1.0));
  };
  ImVec2 from{min.x + along(state.map.pan_column, columns, wide),
              min.y + along(state.map.pan_row, rows, high)};
  ImVec2 to{min.x + along(state.map.pan_column + seen_columns, columns, wide),
            min.y + along(state.map.pan_row + seen_rows, rows, high)};
  add_frame(draw, from,
            {std::max(to.x, from.x + frame.px(3)), std::max(to.y, from.y + frame.px(3))},
            frame.theme.frame, 0, frame.px(1.5f));
  add_frame(draw, min, max, frame.theme.strong_line, 0, frame.px(1));
  draw_text_ending_at(draw, frame.fonts.mono_small, min.x - frame.px(6), min.y + frame.px(9),
                      frame.theme.quiet, text);
}

// If not all pictures fit, keeps those that do; the user can step through them.
void drop_panels_without_room(const Frame& frame, UiState& state, std::vector<Panel>& panels,
                              float room, float margin) {
  auto fits = static_cast<std::size_t>(
      std::max(1.0f, std::floor((room + margin) / (frame.px(64) + margin))));
  state.map.panels_hidden = panels.size() - std::min(panels.size(), fits);
  if (panels.size() <= fits) return;
  std::size_t first = state.map.first_panel % panels.size();
  std::rotate(panels.begin(), panels.begin() + static_cast<std::ptrdiff_t>(first), panels.end());
  panels.resize(fits);
}

// The common scale of all pictures, so that lengths are comparable.
struct CommonScale {
  std::int64_t rows = 1, columns = 1;  // of the largest tensor
  double row_pixels = 0, column_pixels = 0;
  double widest = 0, highest = 0;  // of a picture, in pixels
  float margin = 0;                // room for numbers to the right
  std::vector<PanelOptions> panel_options;
};

CommonScale common_scale(const Frame& frame, const MapState& map, std::span<const Panel> panels,
                         float room, float margin, float height) {
  const Slice& slice = map.slice;
  CommonScale scale;
  scale.margin = margin;
  float count = static_cast<float>(panels.size());
  // Titles are shortened rather than pictures on small screens.
  float most_head = std::max(1.0f, (room - margin * (count - 1)) / count - 1);
  for (const Panel& panel : panels) {
    scale.panel_options.push_back(
        {static_cast<double>(extent_of(panel.shape, slice.column)),
         std::min(head_width(frame, panel) - margin + frame.px(24), most_head)});
    scale.rows = std::max(scale.rows, extent_of(panel.shape, slice.row));
    scale.columns = std::max(scale.columns, extent_of(panel.shape, slice.column));
  }
  scale.column_pixels = column_pixels_for(scale.panel_options, room, margin);
  scale.row_pixels = static_cast<double>(height) / static_cast<double>(scale.rows);
  scale.widest =
      widest_panel_for(scale.panel_options, room, margin, scale.column_pixels * map.zoom);
  scale.highest = static_cast<double>(height);
  return scale;
}

// View of one panel at the common scale. `shift` moves it so that the tile in the middle of the
// leading panel is in its middle too.
TileView view_of(const MapState& map, const CommonScale& scale, const Panel& panel,
                 const TileShift& shift) {
  TileView view{0, 0, scale.row_pixels * map.zoom, scale.column_pixels * map.zoom, 1, 1};
  auto see = [](std::int64_t extent, double each, double most, double wanted, double& first) {
    const double whole = static_cast<double>(extent) * each, side = std::min(whole, most);
    first = std::clamp(wanted, 0.0, std::max(0.0, (whole - side) / each));
    return static_cast<int>(std::max(1.0, side));
  };
  view.width = see(extent_of(panel.shape, map.slice.column), view.column_pixels, scale.widest,
                   map.pan_column + shift.column, view.first_column);
  view.height = see(extent_of(panel.shape, map.slice.row), view.row_pixels, scale.highest,
                    map.pan_row + shift.row, view.first_row);
  return view;
}

// The views of all pictures. They show the tile that is in the middle of the leading one.
std::vector<TileView> tile_views_of(MapState& map, const Picture& picture, const CommonScale& scale,
                                    std::span<const Panel> panels) {
  map.leads_after = map.leads_after && picture.after != nullptr;
  const Kind lead = map.leads_after ? Kind::kAfter : Kind::kSaved;
  const TileSet& tiles = map.leads_after ? *picture.after : *picture.saved;
  const TileView view = view_of(map, scale, {lead, "", "", tiles.shape()}, {});
  map.pan_row = view.first_row;
  map.pan_column = view.first_column;
  const auto tile = tile_at(tiles, map.slice, view.first_row + view.height / view.row_pixels / 2,
                            view.first_column + view.width / view.column_pixels / 2);
  std::vector<TileView> views;
  for (const Panel& panel : panels) {
    const TileSet* other = panel.kind == Kind::kSaved   ? picture.saved.get()
                           : panel.kind == Kind::kAfter ? picture.after.get()
                                                        : picture.expected_tiles.get();
    TileShift shift;
    if (map.zoom > 1 && tile && other != nullptr && panel.kind != lead)
      shift =
          map.shifts.find(tiles, *tile, *other, map.slice, static_cast<std::size_t>(panel.kind));
    views.push_back(view_of(map, scale, panel, shift));
  }
  return views;
}

MapPicture map_picture_of(const Frame& frame, const UiState& state, const Picture& picture,
                          Kind kind, ImVec2 at, const TileView& view) {
  bool after = kind == Kind::kAfter;
  MapPicture map{after ? "map/after" : "map/saved",
                 after ? kAfterSlot : 0,
                 at,
                 after ? picture.after : picture.saved,
                 state.map.slice,
                 view,
                 true,
                 after};
  map.bad_boxes = after ? picture.lost : picture.missing;
  map.colouring = colouring_of(frame, state);
  map.paint = current_tile_paint(frame, state);
  if (after) {
    map.origins = picture.origins;
    map.problem_word = "lost";
    map.problem_note = picture.fill_text;
  } else {
    map.overlapped_boxes = picture.overlapping;
    map.filled_boxes = picture.filled;
    map.filled_note = picture.filled_note;
  }
  return map;
}

// Draws the tiles of a checkpoint and handles the mouse; returns the tile under it.
std::optional<ChunkId> draw_tiles(Frame& frame, UiState& state, const MapPicture& map) {
  bool clicked = false;
  auto under = draw_map(frame, state, map, &clicked);
  pan_and_zoom(state, map);
  if (under && !frame.stable && !ImGui::IsItemActive()) tile_tooltip(frame, *under);
  if (clicked && under && ImGui::GetIO().MouseDragMaxDistanceSqr[0] < frame.px(4) * frame.px(4)) {
    state.map_has_keys = true;
    frame.emit(SelectChunkCommand{under});
  }
  return under;
}

std::optional<ChunkId> draw_picture(Frame& frame, ImDrawList* draw, UiState& state,
                                    const Picture& picture, const Panel& panel, ImVec2 at,
                                    const TileView& view) {
  const Slice slice = state.map.slice;
  ImVec2 end{at.x + static_cast<float>(view.width), at.y + static_cast<float>(view.height)};
  std::optional<ChunkId> under;
  if (panel.kind == Kind::kExpected) {
    bool tinted = state.colour_by == ColourBy::kWriter;
    draw_expected(frame, draw, picture, slice, at, end, view,
                  tinted ? std::optional(colouring_of(frame, state)) : std::nullopt);
  } else {
    under = draw_tiles(frame, state, map_picture_of(frame, state, picture, panel.kind, at, view));
  }
  draw_numbers(frame, draw, picture, panel, slice, at, end, view);
  return under;
}

}  // namespace

void draw_panels(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
                 Column& column, float height) {
  const Slice slice = state.map.slice;
  auto panels = map_panels_of(frame, state, picture);
  float margin = frame.px(56), room = column.width() - margin;
  drop_panels_without_room(frame, state, panels, room, margin);
  if (slice.row < 0) height = std::min(height, frame.px(220));
  float head_room = frame.px(66), picture_room = height - head_room;
  CommonScale scale = common_scale(frame, state.map, panels, room, margin, picture_room);
  if (scale.row_pixels <= 0) return;
  const std::vector<TileView> views = tile_views_of(state.map, picture, scale, panels);
  std::optional<ChunkId> hovered;
  float x = column.left;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const TileView& view = views[p];
    float slot =
        std::max(scale.panel_options[p].head_width, static_cast<float>(view.width)) + margin;
    ImVec2 at{std::floor(x), std::floor(column.y + head_room)};
    draw_panel_head(frame, draw, picture, panels[p], {at.x, column.y}, slot - frame.px(10));
    if (auto under = draw_picture(frame, draw, state, picture, panels[p], at, view))
      hovered = under;
    x += slot;
  }
  state.map.hovered = hovered;
  const Extents& lead = (state.map.leads_after ? picture.after : picture.saved)->shape();
  if (state.map.zoom > 1)
    draw_minimap(frame, draw, state, {column.right, column.y - frame.px(42)},
                 extent_of(lead, slice.row), extent_of(lead, slice.column),
                 scale.highest / (scale.row_pixels * state.map.zoom),
                 scale.widest / (scale.column_pixels * state.map.zoom));
  column.take(height);
}

}  // namespace shw
