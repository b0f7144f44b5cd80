// The centre: one tensor, its pictures side by side at one scale, and where the slice was taken.
#include "views/tensor_view.h"

#include <fmt/core.h>

#include <algorithm>

#include "views/imgui_versions.h"
#include "views/parts.h"
#include "views/text.h"
#include "views/tile_map.h"

namespace shw {

double column_pixels_for(std::span<const PanelWish> panels, float room, float gap) {
  auto width_at = [&](double pixels) {
    double width = panels.empty() ? 0 : gap * static_cast<double>(panels.size() - 1);
    for (const PanelWish& panel : panels)
      width += std::max(static_cast<double>(panel.head_width), panel.columns * pixels);
    return width;
  };
  double most = 1;
  for (const PanelWish& panel : panels) most = std::max(most, panel.columns);
  double low = 0, high = std::max(1.0f, room) / most;
  for (int step = 0; step < 40; ++step) {
    double middle = (low + high) / 2;
    (width_at(middle) <= room ? low : high) = middle;
  }
  return low;
}

namespace {

enum class Kind { kSaved, kExpected, kAfter };
struct Panel {
  Kind kind;
  std::string title, caption;
  Extents shape;
  float width = 0;  // of the picture, whole pixels
  float x = 0;
};

std::int64_t extent_of(const Extents& shape, int dim) {
  auto d = static_cast<std::size_t>(dim);
  return dim >= 0 && d < shape.size() ? std::max<std::int64_t>(shape[d], 0) : 1;
}

std::string dim_text(int dim) {
  return fmt::format("dim {}", dim);
}

// The dims that are neither rows nor columns, the one with the most cuts first.
std::vector<int> other_dims(const Picture& picture, const Slice& slice) {
  std::vector<int> dims;
  for (int d = 0; d < static_cast<int>(picture.saved->ndim()); ++d) {
    if (d != slice.row && d != slice.column) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) {
    return picture.saved->cuts(static_cast<std::size_t>(a)).size() >
           picture.saved->cuts(static_cast<std::size_t>(b)).size();
  });
  return dims;
}

void follow_tensor(Frame& frame, DeskState& state) {
  const Picture& picture = *frame.digest.picture;
  if (state.map.of.lock() != picture.saved) {
    state.map = MapState{};
    state.map.of = picture.saved;
    state.map.slice = picture.slice;
  }
  // A selected tile that the slice misses moves the slice.
  auto chunk = frame.snapshot.chunk;
  if (state.map.pinned) chunk = state.map.pinned;
  if (!chunk || index_of(*chunk) >= frame.snapshot.checkpoint->chunk_count()) return;
  if (frame.snapshot.checkpoint->tensor_of(*chunk) != picture.tensor) return;
  auto at = frame.snapshot.checkpoint->offsets(*chunk);
  auto size = frame.snapshot.checkpoint->sizes(*chunk);
  for (int dim : other_dims(picture, state.map.slice)) {
    auto d = static_cast<std::size_t>(dim);
    if (d >= at.size() || d >= size.size()) continue;
    std::int64_t& now = state.map.slice.at[d];
    // Only when the selection is new: the slider may leave the tile afterwards.
    if (state.map.followed != chunk && (now < at[d] || now - at[d] >= size[d])) now = at[d];
  }
  state.map.followed = chunk;
}

void draw_name(Frame& frame, ImDrawList* draw, const Picture& picture, Column& column) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  float middle = column.y + frame.px(12);
  std::string dtype(name(checkpoint.dtype(picture.tensor)));
  std::string tiles = plural(picture.saved->size(), "tile");
  float chips = text_width(frame.fonts.small, dtype) + text_width(frame.fonts.small, tiles) +
                frame.px(32 + 20);
  Measure measure = [&](std::string_view t) { return text_width(frame.fonts.mono, t); };
  std::string_view fqn = checkpoint.fqn(picture.tensor);
  std::string shown = elide_middle(fqn, column.width() - chips, measure);
  float x = column.left;
  float width = text_from(draw, frame.fonts.mono, x, middle, frame.theme.text, shown);
  if (shown != fqn &&
      ImGui::IsMouseHoveringRect({x, column.y}, {x + width, column.y + frame.px(24)}))
    tooltip(frame, fqn);
  x += width + frame.px(12);
  x += chip(frame, draw, x, middle, dtype, frame.theme.text) + frame.px(8);
  chip(frame, draw, x, middle, tiles, frame.theme.text);
  column.y += frame.px(34);
}

// A click goes to the next dim that the other picker does not hold.
int next_dim(int now, int other, int ndim) {
  for (int step = 1; step <= ndim; ++step) {
    int dim = (now + step) % ndim;
    if (dim != other) return dim;
  }
  return now;
}

void draw_slider(Frame& frame, ImDrawList* draw, DeskState& state, int dim, std::int64_t extent,
                 float x, float middle, float width) {
  auto d = static_cast<std::size_t>(dim);
  std::int64_t& at = state.map.slice.at[d];
  float last = static_cast<float>(std::max<std::int64_t>(extent - 1, 1));
  ImGui::PushID(dim);
  ImGui::SetCursorScreenPos({x, middle - frame.px(9)});
  ImGui::InvisibleButton("position", {width, frame.px(18)});
  mark(frame, fmt::format("slice/{}", dim));
  if (ImGui::IsItemActive()) {
    float part = std::clamp((ImGui::GetMousePos().x - x) / width, 0.0f, 1.0f);
    at = std::clamp<std::int64_t>(static_cast<std::int64_t>(part * last + 0.5f), 0, extent - 1);
  }
  bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  if (lit && ImGui::GetIO().MouseWheel != 0)
    at = std::clamp<std::int64_t>(at + (ImGui::GetIO().MouseWheel > 0 ? 1 : -1), 0, extent - 1);
  float half = frame.px(2), place = x + width * static_cast<float>(at) / last;
  draw->AddRectFilled({x, middle - half}, {x + width, middle + half}, frame.theme.raised, half);
  draw->AddRectFilled({x, middle - half}, {place, middle + half}, frame.theme.head, half);
  draw->AddCircleFilled({place, middle}, frame.px(lit ? 6 : 5),
                        lit ? frame.theme.text : frame.theme.quiet);
  focus_ring(frame, draw);
  ImGui::PopID();
}

void draw_pickers(Frame& frame, ImDrawList* draw, DeskState& state, const Picture& picture,
                  Column& column) {
  Slice& slice = state.map.slice;
  int ndim = static_cast<int>(picture.saved->ndim());
  if (ndim == 0) return;
  float middle = column.y + frame.px(12), x = column.left, width = 0;
  auto label = [&](std::string_view text) {
    x += text_from(draw, frame.fonts.small, x, middle, frame.theme.quiet, text) + frame.px(8);
  };
  auto pick = [&](const char* id, int dim) {
    bool clicked = chip_button(frame, id, x, middle, dim < 0 ? "none" : dim_text(dim), &width);
    x += width + frame.px(12);
    return clicked;
  };
  if (ndim >= 2) {
    label("rows");
    if (pick("rows", slice.row)) slice.row = next_dim(slice.row, slice.column, ndim);
  }
  label("columns");
  if (pick("columns", slice.column)) slice.column = next_dim(slice.column, slice.row, ndim);
  bool first = true;
  for (int dim : other_dims(picture, slice)) {
    auto d = static_cast<std::size_t>(dim);
    if (column.right - x < frame.px(200)) break;
    if (first) label("at");
    first = false;
    std::string text = fmt::format("{} = {}", dim_text(dim), slice.at[d]);
    x += chip(frame, draw, x, middle, text, frame.theme.text) + frame.px(12);
    draw_slider(frame, draw, state, dim, picture.saved->shape()[d], x, middle, frame.px(116));
    x += frame.px(116 + 16);
  }
  std::string colour = "coloured by writer";
  float wide = text_width(frame.fonts.small, colour);
  if (column.right - x > wide)
    text_until(draw, frame.fonts.small, column.right, middle, frame.theme.quiet, colour);
  column.y += frame.px(40);
}

std::vector<Panel> panels_of(const Frame& frame, const Picture& picture, const Slice& slice) {
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
  else if (picture.expects && picture.expected == picture.saved->shape())
    panels[0].caption += ", as " + picture.expected_from + " expects";
  if (picture.after != nullptr) {
    bool done = frame.snapshot.repaired != nullptr;
    panels.push_back({Kind::kAfter, done ? "REPAIRED" : "AFTER REPAIR", picture.after_text,
                      picture.after->shape()});
  }
  return panels;
}

float head_width(const Frame& frame, const Panel& panel) {
  float title =
      text_width(frame.fonts.strong, panel.title) + frame.px(12) +
      (panel.kind == Kind::kAfter ? 0 : extents_width(frame.fonts.mono_small, panel.shape));
  return std::max(title, text_width(frame.fonts.small, panel.caption));
}

// Wrong numbers are red, what the repair changes is gold.
Rgba number_colour(const Frame& frame, const Picture& picture, const Panel& panel, int dim) {
  bool differs =
      picture.expects && extent_of(picture.saved->shape(), dim) != extent_of(picture.expected, dim);
  if (panel.kind == Kind::kSaved && differs) return frame.theme.bad;
  if (panel.kind == Kind::kAfter && differs) return frame.theme.accent;
  return frame.theme.quiet;
}

// Extent across over the upper right corner; extent and cuts down along the right edge.
void draw_numbers(Frame& frame, ImDrawList* draw, const Picture& picture, const Panel& panel,
                  const Slice& slice, ImVec2 at, ImVec2 end, double row_pixels, double first_row) {
  const ImFont* font = frame.fonts.mono_small;
  if (slice.column >= 0)
    text_until(draw, font, end.x, at.y - frame.px(10),
               number_colour(frame, picture, panel, slice.column),
               std::to_string(extent_of(panel.shape, slice.column)));
  if (slice.row < 0) return;
  std::int64_t rows = extent_of(panel.shape, slice.row);
  float x = end.x + frame.px(8), lowest = 1e9f;
  auto number = [&](std::int64_t value, Rgba colour) {
    float y = at.y + static_cast<float>((static_cast<double>(value) - first_row) * row_pixels);
    if (y < at.y || y > end.y + 1 || lowest - y < text_height(font)) return;
    lowest = y;
    text_from(draw, font, x, y - (value == rows ? frame.px(6) : 0), colour, std::to_string(value));
  };
  number(rows, number_colour(frame, picture, panel, slice.row));
  const auto& cuts = panel.kind == Kind::kExpected
                         ? picture.expected_cuts[static_cast<std::size_t>(slice.row)]
                         : (panel.kind == Kind::kAfter ? picture.after : picture.saved)
                               ->cuts(static_cast<std::size_t>(slice.row));
  if (cuts.size() > 64) return;
  for (std::size_t c = cuts.size(); c-- > 0;) {
    if (cuts[c] > 0) number(cuts[c], frame.theme.quiet);
  }
}

// Wheel zooms around the mouse, dragging pans, both for all pictures together.
void pan_and_zoom(DeskState& state, ImVec2 at, const TileView& view, double base_row,
                  double base_column, std::int64_t rows, std::int64_t columns) {
  ImGuiIO& io = ImGui::GetIO();
  MapState& map = state.map;
  TileView next = view;
  if (ImGui::IsItemHovered() && io.MouseWheel != 0) {
    double factor = std::pow(1.25, static_cast<double>(io.MouseWheel));
    factor = std::clamp(map.zoom * factor, 1.0, 1e7) / map.zoom;
    next = zoomed(view, factor, io.MousePos.x - at.x, io.MousePos.y - at.y);
    map.zoom *= factor;
  }
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    next.first_row -= io.MouseDelta.y / next.row_pixels;
    next.first_column -= io.MouseDelta.x / next.column_pixels;
  }
  double seen_rows = view.height / (base_row * map.zoom);
  double seen_columns = view.width / (base_column * map.zoom);
  map.pan_row =
      std::clamp(next.first_row, 0.0, std::max(0.0, static_cast<double>(rows) - seen_rows));
  map.pan_column = std::clamp(next.first_column, 0.0,
                              std::max(0.0, static_cast<double>(columns) - seen_columns));
}

void draw_panels(Frame& frame, ImDrawList* draw, DeskState& state, const Picture& picture,
                 Column& column, float height) {
  const Slice& slice = state.map.slice;
  auto panels = panels_of(frame, picture, slice);
  std::vector<PanelWish> wishes;
  std::int64_t rows = 1, columns = 1;
  float margin = frame.px(56);  // numbers to the right of each
  float room = column.width() - margin, count = static_cast<float>(panels.size());
  // Titles must not starve the pictures: on a small screen they are cut instead.
  float most_head = std::max(1.0f, (room - margin * (count - 1)) / count);
  for (const Panel& panel : panels) {
    wishes.push_back({static_cast<double>(extent_of(panel.shape, slice.column)),
                      std::min(head_width(frame, panel) - margin + frame.px(24), most_head)});
    rows = std::max(rows, extent_of(panel.shape, slice.row));
    columns = std::max(columns, extent_of(panel.shape, slice.column));
  }
  double base_column = column_pixels_for(wishes, room, margin);
  if (slice.row < 0) height = std::min(height, frame.px(220));
  float head_room = frame.px(66);
  double base_row = static_cast<double>(height - head_room) / static_cast<double>(rows);
  if (base_row <= 0) return;
  std::optional<ChunkId> hovered;
  float x = column.left;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    Panel& panel = panels[p];
    std::int64_t panel_rows = extent_of(panel.shape, slice.row);
    std::int64_t panel_columns = extent_of(panel.shape, slice.column);
    TileView view{state.map.pan_row,
                  state.map.pan_column,
                  base_row * state.map.zoom,
                  base_column * state.map.zoom,
                  static_cast<int>(std::max(1.0, static_cast<double>(panel_columns) * base_column)),
                  static_cast<int>(std::max(1.0, static_cast<double>(panel_rows) * base_row))};
    ImVec2 at{std::floor(x), std::floor(column.y + head_room)};
    ImVec2 end{at.x + static_cast<float>(view.width), at.y + static_cast<float>(view.height)};
    bool after = panel.kind == Kind::kAfter;
    float title = text_from(draw, frame.fonts.strong, at.x, column.y + frame.px(9),
                            after ? frame.theme.accent : frame.theme.text, panel.title);
    float slot = std::max(wishes[p].head_width, static_cast<float>(view.width)) + margin;
    bool fits = title + frame.px(12) + extents_width(frame.fonts.mono_small, panel.shape) < slot;
    if (!after && fits)
      draw_extents(frame, draw, frame.fonts.mono_small, at.x + title + frame.px(12),
                   column.y + frame.px(9), panel.shape,
                   panel.kind == Kind::kSaved && picture.expects ? ExtentsView(picture.expected)
                                                                 : ExtentsView{},
                   frame.theme.text, frame.theme.bad);
    Measure measure = [&](std::string_view t) { return text_width(frame.fonts.small, t); };
    if (!after && !fits)  // the numbers matter more than the caption
      draw_extents(frame, draw, frame.fonts.mono_small, at.x, column.y + frame.px(29), panel.shape,
                   panel.kind == Kind::kSaved && picture.expects ? ExtentsView(picture.expected)
                                                                 : ExtentsView{},
                   frame.theme.text, frame.theme.bad);
    else
      text_from(draw, frame.fonts.small, at.x, column.y + frame.px(29), frame.theme.quiet,
                elide_middle(panel.caption, slot - frame.px(10), measure));
    if (panel.kind == Kind::kExpected) {
      draw_expected(frame, draw, picture, slice, at, end, view);
    } else {
      MapPicture map{
          after ? "map/after" : "map/saved",
          after ? 1 : 0,
          at,
          after ? picture.after : picture.saved,
          slice,
          view,
          true,
          after,
          after ? std::span<const Box>(picture.lost) : std::span<const Box>(picture.missing),
          after ? std::span<const Box>() : std::span<const Box>(picture.overlapping)};
      if (after) {
        map.origins = picture.origins;
        map.bad_word = "lost";
        map.bad_note = picture.fill_text;
      }
      bool clicked = false;
      auto under = draw_map(frame, state, map, &clicked);
      pan_and_zoom(state, at, view, base_row, base_column, rows, columns);
      if (under) hovered = under;
      if (clicked && under &&
          ImGui::GetIO().MouseDragMaxDistanceSqr[0] < frame.px(4) * frame.px(4)) {
        state.map_has_keys = true;
        frame.emit(SelectChunkCommand{under});
      }
    }
    draw_numbers(frame, draw, picture, panel, slice, at, end, view.row_pixels, view.first_row);
    x += slot;
  }
  state.map.hovered = hovered;
  column.y += height;
}

void draw_overview(Frame& frame, ImDrawList* draw, DeskState& state, const Picture& picture,
                   Column& column, float height) {
  auto others = other_dims(picture, state.map.slice);
  const TileSet& tiles = *picture.saved;
  auto across = static_cast<std::size_t>(others.front());
  Slice slice = state.map.slice;
  slice.column = others.front();
  std::int64_t extent = tiles.shape()[across], rows = extent_of(tiles.shape(), slice.row);
  float middle = column.y + frame.px(9);
  float title =
      text_from(draw, frame.fonts.strong, column.left, middle, frame.theme.text, "ALL TILES");
  std::size_t parts = tiles.cuts(across).size();
  std::string caption = dim_text(others.front()) + " across in " + plural(parts, "tile");
  if (parts > 1) caption += fmt::format(" of {}", tiles.cuts(across)[1] - tiles.cuts(across)[0]);
  if (slice.row >= 0) caption += ", " + dim_text(slice.row) + " down";
  float caption_room = column.width() - title - frame.px(12);
  std::string_view more = "; the frame marks where the slice above was taken";
  if (text_width(frame.fonts.small, caption + std::string(more)) <= caption_room) caption += more;
  text_from(draw, frame.fonts.small, column.left + title + frame.px(12), middle, frame.theme.quiet,
            caption);
  ImVec2 at{column.left, column.y + frame.px(28)};
  TileView view{
      0, 0, 1, 1, static_cast<int>(column.width()), static_cast<int>(height - frame.px(28 + 26))};
  if (view.height < 4 || extent < 1) return;
  view.column_pixels = view.width / static_cast<double>(extent);
  view.row_pixels = view.height / static_cast<double>(std::max<std::int64_t>(rows, 1));
  bool clicked = false;
  MapPicture map{"map/all", 2, at, picture.saved, slice, view, false, false, picture.missing};
  auto under = draw_map(frame, state, map, &clicked);
  if (under) state.map.hovered = under;
  if (ImGui::IsItemActive()) {
    Element element = element_at(view, ImGui::GetMousePos().x - at.x, 0);
    state.map.slice.at[across] = std::clamp<std::int64_t>(element.column, 0, extent - 1);
  }
  auto& cuts = tiles.cuts(across);
  auto after = std::upper_bound(cuts.begin(), cuts.end(), state.map.slice.at[across]);
  double from = after == cuts.begin() ? 0 : static_cast<double>(*std::prev(after));
  double to = after == cuts.end() ? static_cast<double>(extent) : static_cast<double>(*after);
  float x0 = at.x + static_cast<float>(from * view.column_pixels);
  float x1 = std::max(x0 + frame.px(3), at.x + static_cast<float>(to * view.column_pixels));
  float out = frame.px(4), end_y = at.y + static_cast<float>(view.height);
  add_frame(draw, {std::floor(x0) - frame.px(1), at.y - out}, {std::floor(x1), end_y + out},
            frame.theme.frame, frame.px(2), frame.px(2));
  int ticks = static_cast<int>(std::min<std::int64_t>(4, extent));
  for (int tick = 0; tick <= ticks; ++tick) {
    std::int64_t value = extent * tick / ticks;
    std::string text = std::to_string(value);
    float width = text_width(frame.fonts.mono_small, text);
    float x = at.x + static_cast<float>(static_cast<double>(value) * view.column_pixels);
    x -= width * static_cast<float>(tick) / static_cast<float>(ticks);
    text_from(draw, frame.fonts.mono_small, x, end_y + frame.px(15), frame.theme.quiet, text);
  }
  column.y += height;
}

// Arrows step from tile to tile in the recorded order of the slice's neighbours.
void map_keys(Frame& frame, DeskState& state, const Picture& picture) {
  if (!state.map_has_keys || state.palette_open || state.browser.open || state.plan_open ||
      state.mesh_open || ImGui::GetIO().WantTextInput)
    return;
  auto tile = current_tile(frame, state);
  for (KeyPress key : frame.keys) {
    int dim = key.key == Key::kLeft || key.key == Key::kRight ? state.map.slice.column
              : key.key == Key::kUp || key.key == Key::kDown  ? state.map.slice.row
                                                              : -1;
    if (dim < 0 || !tile || key.ctrl) continue;
    auto d = static_cast<std::size_t>(dim);
    auto at = frame.snapshot.checkpoint->offsets(*tile);
    auto size = frame.snapshot.checkpoint->sizes(*tile);
    if (at.size() != picture.saved->ndim() || d >= size.size()) continue;
    Extents point = copy_of(at);
    for (int other : other_dims(picture, state.map.slice))
      point[static_cast<std::size_t>(other)] = state.map.slice.at[static_cast<std::size_t>(other)];
    bool forward = key.key == Key::kRight || key.key == Key::kDown;
    point[d] = forward ? at[d] + size[d] : at[d] - 1;
    if (auto next = picture.saved->find(point))
      frame.emit(SelectChunkCommand{picture.saved->chunk(*next)});
  }
}

}  // namespace

void draw_tensor(Frame& frame, DeskState& state, Region region) {
  begin_region(frame, "tensor", region, frame.theme.background, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float pad = frame.px(16);
  Column column{draw, region.min.x + pad, region.max.x - pad, region.min.y + frame.px(10)};
  if (frame.digest.picture == nullptr) {
    column.y += frame.px(20);
    paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
              "Choose a tensor on the left to see who wrote its tiles.");
    end_region();
    return;
  }
  const Picture& picture = *frame.digest.picture;
  follow_tensor(frame, state);
  draw_name(frame, draw, picture, column);
  draw_pickers(frame, draw, state, picture, column);
  column.left += frame.px(30);
  column.right -= frame.px(6);
  float room = region.max.y - column.y - frame.px(14);
  auto others = other_dims(picture, state.map.slice);
  float below = others.empty() ? 0 : std::clamp(room * 0.36f, frame.px(110), frame.px(290));
  draw_panels(frame, draw, state, picture, column, room - below - (below > 0 ? frame.px(26) : 0));
  column.y += frame.px(26);
  if (!others.empty()) draw_overview(frame, draw, state, picture, column, below);
  map_keys(frame, state, picture);
  if (state.map.hovered && !frame.stable && state.map.pinned &&
      (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
    state.map.pinned.reset();
  end_region();
}

}  // namespace shw
