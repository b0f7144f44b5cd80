// The centre: the pictures of one tensor at one scale, and the controls of the slice.
#include "views/map/tensor_view.h"
#include "views/line.h"

#include <fmt/core.h>

#include <algorithm>

#include "views/imgui_versions.h"
#include "views/map/tile_colours.h"
#include "views/panels/panels.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {

std::int64_t extent_of(const Extents& shape, int dim) {
  auto d = static_cast<std::size_t>(dim);
  return dim >= 0 && d < shape.size() ? std::max<std::int64_t>(shape[d], 0) : 1;
}

std::string dim_text(int dim) {
  return fmt::format("dim {}", dim);
}

// The dims that are neither rows nor columns, most splits first.
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

void toggle_isolated_rank(Frame& frame, UiState& state, std::uint32_t rank) {
  if (state.isolated == rank) return state.isolated.reset();
  state.isolated = rank;
  if (frame.snapshot.checkpoint == nullptr || !frame.snapshot.tensor) return;
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  for (ChunkId chunk : checkpoint.chunks(*frame.snapshot.tensor)) {
    if (checkpoint.writer(chunk) == rank) return frame.emit(SelectChunkCommand{chunk});
  }
  show_toast(frame, state,
             fmt::format("Rank {0} wrote no tile of this tensor; the filter rank:{0} "
                         "lists what it wrote.",
                         rank));
}

namespace {

// A slice that was recorded, or taken over from another tab, need not belong to this tensor.
bool is_slice_of(const Slice& slice, const Extents& shape) {
  const auto ndim = static_cast<int>(shape.size());
  if (slice.at.size() != shape.size() || slice.row < -1 || slice.row >= ndim || slice.column < -1 ||
      slice.column >= ndim || (slice.row >= 0 && slice.row == slice.column))
    return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (slice.at[d] < 0 || slice.at[d] >= std::max<std::int64_t>(shape[d], 1)) return false;
  }
  return true;
}

void sync_map_to_selected_tensor(Frame& frame, UiState& state) {
  const Picture& picture = *frame.digest.picture;
  if (state.map.of.lock() != picture.saved) {
    state.map = MapState{};
    state.map.of = picture.saved;
    state.map.slice = picture.slice;
  }
  if (state.requested_place && state.requested_place->tensor == picture.tensor) {
    const WantedPlace& place = *state.requested_place;
    if (is_slice_of(place.slice, picture.saved->shape())) {
      state.map.slice = place.slice;
      state.map.zoom = place.zoom;
      state.map.pan_row = place.pan_row;
      state.map.pan_column = place.pan_column;
      state.map.leads_after = place.leads_after;
    }
    state.requested_place.reset();
  }
  // A selected tile outside the slice moves the slice.
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
    // Only for new selections: the slider may leave the tile afterwards.
    if (state.map.followed != chunk && (now < at[d] || now - at[d] >= size[d])) now = at[d];
  }
  state.map.followed = chunk;
}

void draw_name(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
               Column& column) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  const std::string dtype = dtype_text(checkpoint, picture.tensor);
  const std::string tiles = plural(picture.saved->size(), "tile");
  float chips = chip_width(frame, dtype) + chip_width(frame, tiles) + frame.px(20);
  const bool with_tiles = column.width() > chips + frame.px(160);
  if (!with_tiles) chips = chip_width(frame, dtype) + frame.px(12);
  Line line(frame, column, 24, Gap::kMedium);
  line.skip(draw_breadcrumb(frame, state, draw, checkpoint.fqn(picture.tensor),
                            {line.x(), line.top()}, column.width() - chips) +
            frame.px(12));
  line.chip(dtype, frame.theme.text);
  if (with_tiles) line.chip(tiles, frame.theme.text);
}

// A click selects the next dim that the other picker does not show.
int next_dim(int now, int other, int ndim) {
  for (int step = 1; step <= ndim; ++step) {
    int dim = (now + step) % ndim;
    if (dim != other) return dim;
  }
  return now;
}

void draw_slider(Frame& frame, ImDrawList* draw, UiState& state, int dim, std::int64_t extent,
                 float x, float middle, float width) {
  auto d = static_cast<std::size_t>(dim);
  std::int64_t& at = state.map.slice.at[d];
  float last = static_cast<float>(std::max<std::int64_t>(extent - 1, 1));
  ImGui::PushID(dim);
  ImGui::SetCursorScreenPos({x, middle - frame.px(9)});
  control(frame, fmt::format("slice/{}", dim), {width, frame.px(18)},
          "The index along this dim: drag it, turn the wheel, or press [ and ].");
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

// Longest text first.
std::vector<std::string> colour_button_labels(const std::optional<std::uint32_t>& isolated,
                                              const std::string& by) {
  if (isolated) return {"only rank " + std::to_string(*isolated), "one rank"};
  return {"coloured by " + by, "by " + by, "colour"};
}

// The colouring menu ("coloured by writer"): writer, mesh axis, or a colouring of tile_paint.h;
// "only rank 33" removes the highlight.
void draw_colour_picker(Frame& frame, UiState& state, Line& line) {
  const auto& axes = frame.digest.mesh->axes;
  bool by_axis =
      state.colour_axis >= 0 && static_cast<std::size_t>(state.colour_axis) < axes.size();
  std::string by = by_axis ? axes[static_cast<std::size_t>(state.colour_axis)].name
                           : std::string(name(state.colour_by));
  if (state.map.zoom > 1) line.shorten(frame.px(106));
  // The text is shortened to the room next to the other pickers.
  std::string text;
  for (const std::string& words : colour_button_labels(state.isolated, by)) {
    text = words;
    if (chip_width(frame, text) <= line.room()) break;
  }
  if (line.room() < chip_width(frame, text) || state.map.panels_hidden > 0) return;
  if (line.chip_button_at_end("colour", text,
                              state.isolated
                                  ? "Shows all ranks again."
                                  : "Chooses what tiles are coloured by.  (Ctrl+1 to Ctrl+7)")) {
    if (state.isolated)
      state.isolated.reset();
    else
      ImGui::OpenPopup("colour-menu");
  }
  push_font(frame.fonts.small);
  if (ImGui::BeginPopup("colour-menu")) {
    for (int axis = -1; axis < static_cast<int>(axes.size()); ++axis) {
      std::string label = axis < 0 ? "writer" : axes[static_cast<std::size_t>(axis)].name;
      bool chosen = axis == state.colour_axis && state.colour_by == ColourBy::kWriter;
      if (menu_entry(frame, "colour/" + label, label.c_str(), chosen,
                     axis < 0 ? "Colours a tile by the rank that wrote it."
                              : "Colours a tile by its rank's place on this axis.")) {
        colour_by(frame, state, ColourBy::kWriter);
        state.colour_axis = axis;
      }
    }
    for (std::size_t i = 1; i < kColourings; ++i) {
      auto other = static_cast<ColourBy>(i);
      std::string label(name(other));
      if (menu_entry(frame, "colour/" + label, label.c_str(), state.colour_by == other,
                     "Colours a tile by " + label + "."))
        colour_by(frame, state, other);
    }
    ImGui::EndPopup();
  }
  ImGui::PopFont();
}

void draw_pickers(Frame& frame, ImDrawList* draw, UiState& state, const Picture& picture,
                  Column& column) {
  Slice& slice = state.map.slice;
  int ndim = static_cast<int>(picture.saved->ndim());
  if (ndim == 0) return;
  Line line(frame, column, 24, Gap::kLarge);
  const auto label = [&](std::string_view text) {
    line.text(frame.fonts.small, frame.theme.quiet, text);
  };
  const auto pick = [&](const char* id, int dim) {
    return line.chip_button(id, dim < 0 ? "none" : dim_text(dim),
                            "Takes the next dim for this side of the map.");
  };
  if (ndim >= 2) {
    label("rows");
    if (pick("rows", slice.row)) slice.row = next_dim(slice.row, slice.column, ndim);
  }
  label("columns");
  if (pick("columns", slice.column)) slice.column = next_dim(slice.column, slice.row, ndim);
  bool first = true;
  int lines = 1;
  const float reserved = state.map.zoom > 1 ? frame.px(110) : 0;  // room for the zoom overview
  for (int dim : other_dims(picture, slice)) {
    auto d = static_cast<std::size_t>(dim);
    const float wide = frame.px(first ? 236 : 212) + reserved;
    if (lines == 3 && line.room() < wide) break;  // three lines are enough
    if (line.make_room(wide)) ++lines;
    if (first) label("at");
    first = false;
    line.chip(dim_text(dim) + " = " + human_count(static_cast<std::uint64_t>(slice.at[d])),
              frame.theme.text);
    draw_slider(frame, draw, state, dim, picture.saved->shape()[d], line.x(), line.middle(),
                frame.px(116));
    line.skip(frame.px(116 + 16));
  }
  draw_colour_picker(frame, state, line);
  constexpr std::string_view kNext = "next picture";
  if (state.map.panels_hidden == 0) return;
  line.make_room(chip_width(frame, kNext));
  if (line.chip_button_at_end("picture/next", kNext,
                              "Shows the picture that has no room next to the others."))
    ++state.map.first_panel;
}

// Arrow keys step between neighbouring tiles of the slice.
void handle_map_keys(Frame& frame, UiState& state, const Picture& picture) {
  if (!state.map_has_keys || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup) ||
      is_covered(state) || ImGui::GetIO().WantTextInput)
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

void draw_tensor(Frame& frame, UiState& state, Region region) {
  if (state.summary_for != frame.snapshot.tensor) state.summary_open = false;
  state.summary_for = frame.snapshot.tensor;
  if (frame.digest.picture == nullptr || state.summary_open)
    return draw_summary(frame, state, region);
  begin_region(frame, "tensor", region, frame.theme.background, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float pad = frame.px(16);
  Column column{draw, region.min.x + pad, region.max.x - pad, region.min.y + frame.px(10)};
  const Picture& picture = *frame.digest.picture;
  sync_map_to_selected_tensor(frame, state);
  draw_name(frame, draw, state, picture, column);
  draw_pickers(frame, draw, state, picture, column);
  const float beside_legend = state.map.zoom > 1 ? frame.px(106) : 0;  // the zoom overview
  column.right -= beside_legend;
  draw_legend(frame, state, column);
  column.right += beside_legend;
  column.left += frame.px(30);
  column.right -= frame.px(6);
  float room = region.max.y - column.y - frame.px(14);
  auto others = other_dims(picture, state.map.slice);
  float below = others.empty() ? 0 : std::clamp(room * 0.36f, frame.px(110), frame.px(290));
  draw_panels(frame, draw, state, picture, column, room - below - (below > 0 ? frame.px(26) : 0));
  column.take(frame.px(26));
  if (!others.empty()) draw_all_tiles(frame, draw, state, picture, column, below);
  handle_map_keys(frame, state, picture);
  if (state.map.hovered && !frame.stable && state.map.pinned &&
      (ImGui::GetIO().MouseDelta.x != 0 || ImGui::GetIO().MouseDelta.y != 0))
    state.map.pinned.reset();
  end_region();
}

}  // namespace shw
