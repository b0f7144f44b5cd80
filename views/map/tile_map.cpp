#include "views/map/tile_map.h"

#include <fmt/core.h>

#include <algorithm>

#include "views/controls.h"
#include "views/imgui_versions.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxBoxes = 2'000;  // of a list of missing boxes; the rest is counted

// Rings around the first few wrong places, because single pixels are easily overlooked.
class Markers {
 public:
  Markers(Frame& frame, ImDrawList* draw) : frame_(frame), draw_(draw), radius_(frame.px(7)) {}

  bool full() const { return drawn_ == kMost; }
  void add(ImVec2 at) {
    if (full()) return;
    if (std::abs(at.x - last_.x) < radius_ * 2 && std::abs(at.y - last_.y) < radius_ * 2) return;
    draw_->AddCircle(at, radius_ + frame_.px(2), frame_.theme.dark_ink, 0, frame_.px(3));
    draw_->AddCircle(at, radius_, frame_.theme.bad, 0, frame_.px(2));
    draw_->AddCircle(at, radius_ + frame_.px(2.5f), frame_.theme.frame, 0, frame_.px(1));
    last_ = at;
    ++drawn_;
  }

 private:
  static constexpr int kMost = 48;
  Frame& frame_;
  ImDrawList* draw_;
  float radius_;
  ImVec2 last_{-1e9f, -1e9f};
  int drawn_ = 0;
};

void ring_bad_pixels(Frame& frame, ImDrawList* draw, const PaintedLayout& painted, ImVec2 corner) {
  auto width = static_cast<std::uint32_t>(painted.layout.view.width);
  Markers rings(frame, draw);
  for (std::uint32_t pixel : painted.bad_pixels) {
    if (rings.full()) return;
    std::uint32_t row = pixel / width, column = pixel % width;
    rings.add(
        {corner.x + static_cast<float>(column) + 0.5f, corner.y + static_cast<float>(row) + 0.5f});
  }
}

// Rings for wrong tiles drawn as quads that are too small for hatching.
void ring_small_bad_tiles(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                          const TileLayout& layout) {
  float small = frame.px(10);
  Markers rings(frame, draw);
  for (const TileQuad& quad : layout.quads) {
    if (rings.full()) return;
    if (picture.tiles->status(quad.tile) != TileStatus::kBad) continue;
    if (quad.x1 - quad.x0 > small && quad.y1 - quad.y0 > small) continue;
    rings.add({picture.at.x + (quad.x0 + quad.x1) / 2, picture.at.y + (quad.y0 + quad.y1) / 2});
  }
}

void draw_raster(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                 const PaintedLayout& painted) {
  if (painted.texture == 0 || !painted.has_pixels) return;
  // A layout of an earlier frame is stretched to the current view.
  const TileView &now = picture.view, &then = painted.layout.view;
  double row = now.row_pixels / then.row_pixels, column = now.column_pixels / then.column_pixels;
  double x = (then.first_column - now.first_column) * now.column_pixels;
  double y = (then.first_row - now.first_row) * now.row_pixels;
  ImVec2 min{picture.at.x + static_cast<float>(x), picture.at.y + static_cast<float>(y)};
  ImVec2 max{min.x + static_cast<float>(then.width * column),
             min.y + static_cast<float>(then.height * row)};
  draw->AddImage(texture_id(painted.texture), min, max);
  ring_bad_pixels(frame, draw, painted, min);
}

void draw_label(Frame& frame, ImDrawList* draw, const MapPicture& picture, std::uint32_t tile,
                ImVec2 min, ImVec2 max, Rgba fill) {
  const TileSet& tiles = *picture.tiles;
  std::uint32_t writer = tiles.writer(tile);
  std::string who = writer == kNoWriter ? "tile" : fmt::format("rank {}", writer);
  const ImFont *strong = frame.fonts.strong, *mono = frame.fonts.mono_small;
  float width = max.x - min.x - frame.px(8), height = max.y - min.y - frame.px(4);
  Rgba ink = readable_on(fill, frame.theme.dark_ink, frame.theme.light_ink);
  float who_width = text_width(strong, who);
  if (who_width > width || text_height(strong) > height) {
    std::string number = writer == kNoWriter ? "" : std::to_string(writer);
    float number_width = text_width(mono, number);
    if (number_width <= width && text_height(mono) <= height)
      text_from(draw, mono, (min.x + max.x - number_width) / 2, (min.y + max.y) / 2, ink, number);
    return;
  }
  std::string where = to_text(tiles.offsets(tile));
  float where_width = text_width(mono, where), middle = (min.y + max.y) / 2;
  bool both = where_width <= width && text_height(strong) + text_height(mono) <= height;
  std::string_view note;
  if (tile < picture.origins.size()) note = picture.origins[tile].text;
  const ImFont* small = frame.fonts.small;
  float note_width = text_width(small, note);
  bool all = both && !note.empty() && note_width <= width &&
             text_height(strong) + text_height(mono) + text_height(small) + frame.px(6) <= height;
  float shift = all ? frame.px(18) : both ? frame.px(9) : 0;
  text_from(draw, strong, (min.x + max.x - who_width) / 2, middle - shift, ink, who);
  if (both)
    text_from(draw, mono, (min.x + max.x - where_width) / 2, all ? middle : middle + shift, ink,
              where);
  if (all) text_from(draw, small, (min.x + max.x - note_width) / 2, middle + shift, ink, note);
}

const PaintGroup* group_of(const TileRequest& request, std::uint32_t tile) {
  if (request.paint == nullptr) return nullptr;
  const auto& groups = request.after ? request.paint->after : request.paint->saved;
  return tile < groups.size() ? &request.paint->groups[groups[tile]] : nullptr;
}

// Marks that do not rely on colour: the group's sign in the corner, hatching for unread and
// unreadable tiles.
void draw_group(Frame& frame, ImDrawList* draw, const PaintGroup& group, ImVec2 min, ImVec2 max) {
  if (group.token == PaintGroup::Token::kNotLooked)
    draw_hatching(frame, draw, min, max, frame.theme.head);
  if (group.token == PaintGroup::Token::kUnread)
    draw_hatching(frame, draw, min, max, frame.theme.bad_text);
  const ImFont* font = frame.fonts.mono_small;
  float side = frame.px(16), in = frame.px(3);
  if (group.sign.empty() || max.x - min.x < side + 2 * in || max.y - min.y < frame.px(44)) return;
  ImVec2 corner{min.x + in, min.y + in};
  draw->AddRectFilled(corner, {corner.x + side, corner.y + side},
                      with_alpha(frame.theme.dark_ink, 0.55f), frame.px(3));
  text_from(draw, font, corner.x + (side - text_width(font, group.sign)) / 2, corner.y + side / 2,
            frame.theme.light_ink, group.sign);
}

struct QuadPlace {
  ImVec2 min, max;
};
QuadPlace place_of(const Frame& frame, const MapPicture& picture, const TileQuad& quad) {
  float gap = quad.x1 - quad.x0 >= 8 && quad.y1 - quad.y0 >= 8 ? std::max(1.0f, frame.px(1)) : 1;
  return {{picture.at.x + quad.x0, picture.at.y + quad.y0},
          {picture.at.x + quad.x1 - gap, picture.at.y + quad.y1 - gap}};
}

// Thousands of small quads without labels and hatching: 40,000 take 1 ms.
void draw_dense_quads(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                      const PaintedLayout& painted) {
  constexpr std::size_t kAtOnce = 4'000;  // vertex indices have 16 bits
  const TileLayout& layout = painted.layout;
  bool any_bad = picture.tiles->worst() == TileStatus::kBad;
  for (std::size_t first = 0; first < layout.quads.size(); first += kAtOnce) {
    std::size_t last = std::min(first + kAtOnce, layout.quads.size());
    auto count = static_cast<int>(last - first);
    draw->PrimReserve(6 * count, 4 * count);
    for (std::size_t q = first; q < last; ++q) {
      QuadPlace place = place_of(frame, picture, layout.quads[q]);
      bool bad = any_bad && picture.tiles->status(layout.quads[q].tile) == TileStatus::kBad;
      draw->PrimRect(place.min, place.max, bad ? frame.theme.bad : painted.fills[q]);
    }
  }
}

void draw_quads(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                const PaintedLayout& painted) {
  const TileSet& tiles = *picture.tiles;
  const TileLayout& layout = painted.layout;
  bool dense = layout.quads.size() > 4'000;
  if (dense) draw_dense_quads(frame, draw, picture, painted);
  for (std::size_t q = 0; q < layout.quads.size() && !dense; ++q) {
    const TileQuad& quad = layout.quads[q];
    auto [min, max] = place_of(frame, picture, quad);
    Rgba fill = painted.fills[q];
    bool bad = tiles.status(quad.tile) == TileStatus::kBad;
    if (bad) fill = mix(fill, frame.theme.background, 0.72f);
    draw->AddRectFilled(min, max, fill);
    if (bad) {
      draw_hatching(frame, draw, min, max, frame.theme.bad);
      add_frame(draw, min, max, frame.theme.bad, 0, frame.px(2));
    }
    const PaintGroup* group = group_of(painted.request, quad.tile);
    if (group != nullptr && !bad) draw_group(frame, draw, *group, min, max);
    bool aside = picture.colouring.only && *picture.colouring.only != tiles.writer(quad.tile);
    if (picture.labels && !aside && quad.x1 - quad.x0 > frame.px(16) &&
        quad.y1 - quad.y0 > frame.px(14))
      draw_label(frame, draw, picture, quad.tile, min, max, fill);
  }
  if (tiles.worst() == TileStatus::kBad) ring_small_bad_tiles(frame, draw, picture, layout);
}

// Seams: the edges of a moved tile along every visible dim in which its offset changed.
void draw_moved_edges(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                      const TileLayout& layout) {
  const Checkpoint* checkpoint = frame.snapshot.checkpoint.get();
  if (checkpoint == nullptr) return;
  const TileSet& tiles = *picture.tiles;
  float half = frame.px(1.5f), over = frame.px(3);
  for (const TileQuad& quad : layout.quads) {
    ChunkId chunk = tiles.chunk(quad.tile);
    if (index_of(chunk) >= checkpoint->chunk_count()) continue;
    ExtentsView before = checkpoint->offsets(chunk);
    if (quad.tile < picture.origins.size()) before = picture.origins[quad.tile].was;
    auto now = tiles.offsets(quad.tile);
    auto moved_in = [&](int dim) {
      auto d = static_cast<std::size_t>(dim);
      if (dim < 0 || d >= now.size() || now[d] <= 0) return false;
      // A tile from another tensor has no old offset: its rows begin at a seam.
      if (before.empty()) return dim == picture.slice.row || picture.slice.row < 0;
      return d < before.size() && now[d] != before[d];
    };
    ImVec2 min{picture.at.x + quad.x0, picture.at.y + quad.y0};
    ImVec2 max{picture.at.x + quad.x1, picture.at.y + quad.y1};
    // Drawn on a dark halo, because some tiles are as light as gold.
    auto seam = [&](ImVec2 from, ImVec2 to) {
      float out = frame.px(1);
      draw->AddRectFilled({from.x - out, from.y - out}, {to.x + out, to.y + out},
                          frame.theme.tile_line);
      draw->AddRectFilled(from, to, frame.theme.accent);
    };
    if (moved_in(picture.slice.column))
      seam({min.x - half - 0.5f, min.y - over}, {min.x + half - 0.5f, max.y + over - 1});
    if (moved_in(picture.slice.row))
      seam({min.x - over, min.y - half - 0.5f}, {max.x + over - 1, min.y + half - 0.5f});
  }
}

// What hatched boxes are called; no label without a word.
struct BoxWords {
  std::string_view word = {}, note = {};
};

// A label such as "lost, 6 elements, filled with zeros" on a background, readable over hatching.
void draw_box_words(Frame& frame, ImDrawList* draw, const MapPicture& picture, const Box& box,
                    const ImVec4& place, Rgba colour, const BoxWords& words) {
  if (words.word.empty() || !picture.labels) return;
  const ImFont *strong = frame.fonts.strong, *small = frame.fonts.small;
  float width = place.z - place.x - frame.px(12), height = place.w - place.y - frame.px(8);
  std::string count;
  if (auto elements = volume(box.sizes))
    count = plural(static_cast<std::uint64_t>(*elements), "element");
  struct Line {
    const ImFont* font;
    std::string_view text;
    Rgba colour;
  } lines[] = {{strong, words.word, colour},
               {small, count, frame.theme.text},
               {small, words.note, frame.theme.quiet}};
  float step = frame.px(18), wide = 0;
  std::size_t shown = 0;
  for (const Line& line : lines) {
    float w = text_width(line.font, line.text);
    if (line.text.empty() || w > width || step * static_cast<float>(shown + 1) > height) break;
    wide = std::max(wide, w);
    ++shown;
  }
  if (shown == 0) return;
  float middle_x = (place.x + place.z) / 2;
  float top = std::floor((place.y + place.w - step * static_cast<float>(shown)) / 2);
  draw->AddRectFilled(
      {middle_x - wide / 2 - frame.px(6), top - frame.px(2)},
      {middle_x + wide / 2 + frame.px(6), top + step * static_cast<float>(shown) + frame.px(2)},
      frame.theme.background, frame.px(3));
  for (std::size_t i = 0; i < shown; ++i) {
    float w = text_width(lines[i].font, lines[i].text);
    text_from(draw, lines[i].font, middle_x - w / 2, top + step * (static_cast<float>(i) + 0.5f),
              lines[i].colour, lines[i].text);
  }
}

void draw_boxes(Frame& frame, ImDrawList* draw, const MapPicture& picture,
                std::span<const Box> boxes, Rgba colour, const BoxWords& words = {}) {
  for (const Box& box : boxes.first(std::min(boxes.size(), kMaxBoxes))) {
    auto place = box_on_screen(picture, box.offsets, box.sizes);
    if (!place) continue;
    draw->AddRectFilled({place->x, place->y}, {place->z, place->w},
                        mix(frame.theme.background, colour, 0.10f));
    draw_hatching(frame, draw, {place->x, place->y}, {place->z, place->w}, colour);
    add_frame(draw, {place->x, place->y}, {place->z, place->w}, colour, 0, frame.px(2));
    draw_box_words(frame, draw, picture, box, *place, colour, words);
  }
}

void draw_tile_frame(Frame& frame, ImDrawList* draw, const MapPicture& picture, ChunkId chunk) {
  const TileSet& tiles = *picture.tiles;
  // Tile index and chunk index are usually equal, except in a plan with another order.
  if (tiles.size() == 0) return;
  std::size_t guess = index_of(chunk) - std::min(index_of(chunk), index_of(tiles.chunk(0)));
  std::optional<std::uint32_t> tile;
  if (guess < tiles.size() && tiles.chunk(static_cast<std::uint32_t>(guess)) == chunk)
    tile = static_cast<std::uint32_t>(guess);
  for (std::uint32_t t = 0; !tile && tiles.size() <= 4'096 && t < tiles.size(); ++t) {
    if (tiles.chunk(t) == chunk) tile = t;
  }
  auto draw_frame = [&](std::uint32_t t) {
    auto box = box_on_screen(picture, tiles.offsets(t), tiles.sizes(t));
    if (!box || !tiles.crosses(t, picture.slice)) return;
    float out = frame.px(1);
    add_frame(draw, {box->x - out, box->y - out}, {box->z + out - 1, box->w + out - 1},
              frame.theme.frame, 0, frame.px(2));
  };
  if (tile && picture.origins.empty()) return draw_frame(*tile);
  // A repair may have split the chunk: marks every piece.
  for (std::uint32_t t = 0; t < tiles.size() && tiles.size() <= 4'096; ++t) {
    if (tiles.chunk(t) == chunk) draw_frame(t);
  }
}

}  // namespace

std::optional<ImVec4> box_on_screen(const MapPicture& picture, ExtentsView offsets,
                                    ExtentsView sizes) {
  const Slice& slice = picture.slice;
  for (std::size_t d = 0; d < offsets.size(); ++d) {
    int dim = static_cast<int>(d);
    if (dim == slice.row || dim == slice.column) continue;
    std::int64_t at = d < slice.at.size() ? slice.at[d] : 0;
    if (at < offsets[d] || at - offsets[d] >= sizes[d]) return std::nullopt;
  }
  auto edges = [&](int dim, double first, double pixels, int side) {
    if (dim < 0) return std::pair{0.0, static_cast<double>(side)};
    auto d = static_cast<std::size_t>(dim);
    double from = (static_cast<double>(offsets[d]) - first) * pixels;
    double to = from + static_cast<double>(sizes[d]) * pixels;
    double limit = side;
    return std::pair{std::clamp(std::round(from), 0.0, limit),
                     std::clamp(std::round(std::max(to, from + 2)), 0.0, limit)};
  };
  auto [x0, x1] = edges(slice.column, picture.view.first_column, picture.view.column_pixels,
                        picture.view.width);
  auto [y0, y1] =
      edges(slice.row, picture.view.first_row, picture.view.row_pixels, picture.view.height);
  if (x1 <= x0 || y1 <= y0) return std::nullopt;
  return ImVec4{picture.at.x + static_cast<float>(x0), picture.at.y + static_cast<float>(y0),
                picture.at.x + static_cast<float>(x1), picture.at.y + static_cast<float>(y1)};
}

void draw_hatching(Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max, Rgba colour) {
  float step = frame.px(8), height = max.y - min.y;
  if (max.x - min.x < 3 || height < 3) {
    draw->AddRectFilled(min, max, colour);
    return;
  }
  draw->PushClipRect(min, max, true);
  for (float x = min.x - height; x < max.x; x += step)
    draw->AddLine({x, max.y}, {x + height, min.y}, with_alpha(colour, 0.8f), frame.px(1));
  draw->PopClipRect();
}

std::optional<ChunkId> draw_map(Frame& frame, UiState& state, const MapPicture& picture,
                                bool* clicked) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  ImVec2 size{static_cast<float>(picture.view.width), static_cast<float>(picture.view.height)};
  if (size.x < 1 || size.y < 1) return std::nullopt;
  ImVec2 end{picture.at.x + size.x, picture.at.y + size.y};
  const PaintedLayout* painted = frame.layouts.get(
      picture.slot, {picture.tiles, picture.slice, picture.view, frame.digest.mesh->grid,
                     picture.colouring, picture.paint, picture.seams});
  if (painted != nullptr && painted->request.tiles == picture.tiles) {
    draw->PushClipRect(picture.at, end, true);
    draw_raster(frame, draw, picture, *painted);
    if (painted->layout.view == picture.view || painted->layout.quads.size() < kMaxQuads)
      draw_quads(frame, draw, picture, *painted);
    draw->PopClipRect();
  }
  draw_boxes(frame, draw, picture, picture.bad_boxes, frame.theme.bad,
             {picture.problem_word, picture.problem_note});
  draw_boxes(frame, draw, picture, picture.filled_boxes, frame.theme.bad,
             {"lost", picture.filled_note});
  draw_boxes(frame, draw, picture, picture.overlapped_boxes, frame.theme.warn);
  if (auto tile = current_tile(frame, state)) draw_tile_frame(frame, draw, picture, *tile);
  if (picture.seams && painted != nullptr && painted->request.tiles == picture.tiles)
    draw_moved_edges(frame, draw, picture, painted->layout);
  ImGui::SetCursorScreenPos(picture.at);
  if (picture_control(frame, picture.id, size)) *clicked = true;
  focus_ring(frame, draw);
  bool menu = ImGui::IsItemClicked(ImGuiMouseButton_Right);
  if (!mouse_is_over()) return std::nullopt;
  ImVec2 mouse = ImGui::GetMousePos();
  Element element = element_at(picture.view, mouse.x - picture.at.x, mouse.y - picture.at.y);
  auto tile =
      picture.tiles->find(tensor_index_of_element(picture.slice, picture.tiles->ndim(), element));
  if (!tile) return std::nullopt;
  if (menu) state.menu = {frame.snapshot.tensor, picture.tiles->chunk(*tile), true};
  return picture.tiles->chunk(*tile);
}

}  // namespace shw
