// The left column: filter, tensor list, mesh of ranks, facts about the checkpoint.
#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>
#include <algorithm>

#include "core/verbs/names/filter.h"
#include "views/actions.h"
#include "views/columns.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/map/tensor_view.h"
#include "views/map/tile_map.h"
#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"

namespace shw {
namespace {

void set_filter_text(Frame& frame, UiState& state, std::string text) {
  state.filter = std::move(text);
  frame.emit(FilterCommand{state.filter});
}

void draw_filter(Frame& frame, UiState& state, Column& column) {
  float height = frame.px(32);
  ImVec2 at{column.left, column.y};
  ImDrawList* draw = column.draw;
  draw->AddRectFilled(at, {column.right, at.y + height}, frame.theme.field, frame.px(4));
  push_font(frame.fonts.mono_small);
  float pad = std::floor((height - ImGui::GetFontSize()) / 2);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2{frame.px(10), pad});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, IM_COL32_BLACK_TRANS);
  std::string buffer;
  shown_text(frame.fonts.mono_small, state.filter, buffer);  // a field shows its text itself
  ImGui::SetNextItemWidth(column.width() - frame.px(26));
  if (state.filter_wanted) {
    ImGui::SetKeyboardFocusHere();
    state.filter_wanted = false;
  }
  InputStyle look;
  look.hint = "name  finding:*  dtype:  rank:";
  const Tip tip(
      "Lists only tensors that pass: parts of a name, ~letters in their order, finding:, "
      "dtype:, rank:, ndim:, shape:. Enter goes to the first one, Esc clears it.",
      Action::kFilter);
  bool changed = edit_line(frame, "filter", state.filter, look, tip);
  bool active = ImGui::IsItemActive();
  const bool is_entered = (active || ImGui::IsItemDeactivated()) && frame.pressed({Key::kEnter});
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  // Escape clears the filter only while its field has the focus.
  if (active && frame.pressed({Key::kEscape}) && !state.filter.empty()) {
    state.filter.clear();
    changed = true;
  }
  if (changed) frame.emit(FilterCommand{state.filter});
  // The list may still be filtered by an earlier text; then its first tensor is not the right one.
  const ListModel& list = *frame.digest.list;
  if (is_entered && frame.snapshot.filter == state.filter && list.size() != 0)
    frame.emit(SelectTensorCommand{std::string(list.checkpoint->fqn(list.tensor(0)))});
  draw->AddRect(at, {column.right, at.y + height}, active ? frame.theme.quiet : frame.theme.control,
                frame.px(4));
  if (!state.filter.empty()) {
    ImGui::SetCursorScreenPos({column.right - frame.px(26), at.y});
    if (control(frame, "filter/clear", {frame.px(26), height}, "Clears the filter."))
      set_filter_text(frame, state, "");
    Rgba colour = ImGui::IsItemHovered() ? frame.theme.text : frame.theme.quiet;
    float x = column.right - frame.px(13), y = at.y + height / 2, s = frame.px(3.5f);
    draw->AddLine({x - s, y - s}, {x + s, y + s}, colour, frame.px(1.4f));
    draw->AddLine({x - s, y + s}, {x + s, y - s}, colour, frame.px(1.4f));
    focus_ring(frame, draw);
  }
  column.take(height + frame.px(18));
}

// Suggestions for a filter without results; returns their height.
float draw_empty_filter_hints(Frame& frame, UiState& state, Column& column) {
  const float from = column.y;
  caption(frame, column,
          "No tensor passes. The filter takes parts of a name, ~letters in their order, and "
          "finding:, dtype:, rank:, ndim:, shape:.",
          Gap::kSmall);
  std::string letters = as_fuzzy_filter(state.filter);
  if (!letters.empty() &&
      Line(frame, column, 22)
          .chip_button("list/letters",
                       elide_end("Try " + letters, column.width() - frame.px(20),
                                 measure_with(frame.fonts.small)),
                       "Lists tensors whose names have these letters in this order."))
    set_filter_text(frame, state, letters);
  if (Line(frame, column, 22).chip_button("list/all", "Show all", Action::kShowAll))
    set_filter_text(frame, state, "");
  return column.y - from;
}

// Drawn at the top of the list if there is room next to the count.
void draw_table_chip(Frame& frame, UiState& state, const Column& column, const std::string& shown) {
  const char* label = state.table.open ? "map" : "table";
  float width = chip_width(frame, label);
  float head_width = text_width(frame.fonts.head, "TENSORS  " + shown) + frame.px(24);
  float x = column.right - frame.px(26) - width, drawn = 0;
  if (x < column.left + head_width) return;
  if (chip_button(frame, "list/table", x, column.y + text_height(frame.fonts.head) / 2, label,
                  &drawn, Action::kTable))
    run(Action::kTable, frame, state);
}

// The content below the list, sized so that the list keeps its room.
struct FooterLayout {
  float cells = 0;        // height of the mesh cells in pixels
  bool mesh_text = true;  // show the inferred mesh in full; false: in a tooltip
  bool facts = true;      // all rows; false: one line
  float height = 0;
};

float text_block(const ImFont* font, float width, const std::string& text) {
  return face(font)->CalcTextSizeA(text_height(font), FLT_MAX, width, text.c_str()).y * 1.2f;
}

FooterLayout measure_footer(const Frame& frame, float width, bool short_cells, bool mesh_text,
                            bool facts) {
  const MeshInfo& mesh = *frame.digest.mesh;
  auto rows = static_cast<float>(mesh.grid.rows);
  float cell = mesh.grid.rows <= 2 ? 32.0f : mesh.grid.rows <= 8 ? 18.0f : 160.0f / rows;
  FooterLayout below;
  below.cells = mesh.ranks == 0 ? 0.0f : frame.px(std::clamp(cell * rows, 1.0f, 160.0f));
  if (short_cells) below.cells = std::min(below.cells, frame.px(28));
  below.mesh_text = mesh_text || mesh.ranks == 0;
  below.facts = facts;
  below.height = frame.px(14 + 8 + 4 + 10 + 18) + below.cells +
                 (below.mesh_text ? text_block(frame.fonts.small, width, mesh.text) : 0.0f) +
                 frame.px(facts ? 24 * 4 + 34 : 30);
  return below;
}

// The fullest footer that leaves the list half of the room, or all that its rows need.
FooterLayout fit_footer(const Frame& frame, float width, float room, float list_wants) {
  float least = std::min(list_wants, room * 0.55f);
  FooterLayout below = measure_footer(frame, width, false, true, true);
  for (int step = 0; step < 3 && room - below.height < least; ++step)
    below = measure_footer(frame, width, step >= 1, step < 2, false);
  return below;
}

void draw_mesh(Frame& frame, UiState& state, Column& column, const FooterLayout& below) {
  const MeshInfo& mesh = *frame.digest.mesh;
  head(frame, column, "MESH",
       mesh.ranks == 0   ? "·  WRITERS  NOT  KNOWN"
       : mesh.ranks == 1 ? "·  1  RANK"
                         : "·  " + human_count(mesh.ranks) + "  RANKS");
  // Opens the panel with the inferred mesh, the evidence, and an input.
  const char* label = frame.snapshot.mesh ? "yours" : "why?";
  float width_of_chip = chip_width(frame, label);
  if (chip_button(frame, "mesh/open", column.right - width_of_chip, column.y - frame.px(14), label,
                  &width_of_chip, Action::kMesh))
    run(Action::kMesh, frame, state);
  gap(frame, column, Gap::kTight);
  if (mesh.ranks == 0)  // no writers known: nothing to draw
    return caption(frame, column, mesh.text, Gap::kLarge);
  float total = below.cells;
  float width = column.width() / static_cast<float>(mesh.grid.columns);
  float height = total / static_cast<float>(mesh.grid.rows);
  auto tile = current_tile(frame, state);
  std::optional<std::uint32_t> writer;
  if (tile && frame.snapshot.checkpoint) writer = frame.snapshot.checkpoint->writer(*tile);
  float between = width >= 5 ? 1.0f : 0.0f;
  std::uint64_t places = std::uint64_t{mesh.grid.rows} * mesh.grid.columns;
  Colouring colouring = colouring_of(frame, state);
  ImVec2 frame_min{}, frame_max{};
  // 16,384 ranks take 0.5 ms; with more, cells are smaller than pixels.
  for (std::uint64_t rank = 0; rank < std::min<std::uint64_t>(places, 16'384); ++rank) {
    auto r = static_cast<std::uint32_t>(rank);
    std::uint32_t row = r / mesh.grid.columns;
    float x = column.left + width * static_cast<float>(r % mesh.grid.columns);
    float y = column.y + height * static_cast<float>(row);
    ImVec2 min{std::floor(x), std::floor(y)};
    ImVec2 max{std::floor(x + width) - between,
               std::floor(y + height) - (height >= 5 ? 2.0f : 0.0f)};
    column.draw->AddRectFilled(min, max, tile_colour(r, mesh.grid, colouring));
    if (r < mesh.shares.size() && mesh.shares[r].unreadable_tiles != 0)
      draw_damaged_rank(frame, column.draw, min, max);
    if (writer == r) frame_min = min, frame_max = max;
  }
  if (frame_max.x > frame_min.x)
    add_frame(column.draw, {frame_min.x - 1, frame_min.y - 1}, {frame_max.x + 1, frame_max.y + 1},
              frame.theme.frame, frame.px(1), frame.px(2));
  ImGui::SetCursorScreenPos({column.left, column.y});
  bool clicked = picture_control(frame, "mesh", {column.width(), total});
  focus_ring(frame, column.draw);
  if (mouse_is_over()) {
    ImVec2 mouse = ImGui::GetMousePos();
    auto c = static_cast<std::uint32_t>(std::clamp((mouse.x - column.left) / width, 0.0f,
                                                   static_cast<float>(mesh.grid.columns - 1)));
    auto r = static_cast<std::uint32_t>(
        std::clamp((mouse.y - column.y) / height, 0.0f, static_cast<float>(mesh.grid.rows - 1)));
    std::uint32_t rank = r * mesh.grid.columns + c;
    if (clicked && rank < places) toggle_isolated_rank(frame, state, rank);
    if (!frame.stable && rank < places)
      tooltip(frame, "rank " + rank_text(frame, rank) + "\n" + share_text(frame, rank) +
                         "\na click sets its tiles apart; rank:" + std::to_string(rank) +
                         " in the filter lists them" + (below.mesh_text ? "" : "\n" + mesh.text));
  }
  column.take(total + frame.px(10));
  if (below.mesh_text) caption(frame, column, mesh.text);
  gap(frame, column, Gap::kLarge);
}

void draw_facts(Frame& frame, Column& column, bool all) {
  const CheckpointCard& facts = *frame.digest.facts;
  const Theme& theme = frame.theme;
  if (!all) {  // one line if rows would take room from the list
    const Measure small = measure_with(frame.fonts.small);
    std::string line = facts.is_coverage_known ? facts.coverage : facts.bytes;
    for (const std::string& more : facts.is_coverage_known
                                       ? std::vector{facts.bytes, facts.format}
                                       : std::vector{facts.format, facts.files + " files"}) {
      if (small(line + " · " + more) <= column.width()) line += " · " + more;
    }
    std::string shown = elide_end(line, column.width(), small);
    text_from(column.draw, frame.fonts.small, column.left, column.y, theme.quiet, shown);
    return;
  }
  head(frame, column, "CHECKPOINT");
  row(frame, column, "format", facts.format, theme.text);
  row(frame, column, "files", facts.files, theme.text);
  row(frame, column, "bytes", facts.bytes, theme.text);
  // A row must stay one line, because the column's height is measured before drawing.
  const Measure mono = measure_with(frame.fonts.mono_small);
  const std::string coverage =
      elide_end(facts.is_coverage_known ? facts.coverage : "not yet checked",
                column.width() - mono("coverage") - frame.px(17), mono);
  row(frame, column, "coverage", coverage,
      !facts.is_coverage_known ? theme.quiet
      : facts.sound            ? theme.ok
      : facts.complete         ? theme.text
                               : theme.bad);
}

}  // namespace

void draw_left(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "left", region, frame.theme.side, false);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float pad = frame.px(12);
  Column column{draw, region.min.x + pad, region.max.x - pad, region.min.y + frame.px(10)};
  draw_filter(frame, state, column);
  const ListModel& list = *frame.digest.list;
  std::uint32_t all = list.checkpoint ? list.checkpoint->tensor_count() : 0;
  std::string shown = list.size() == all ? "·  " + human_count(all)
                                         : "·  " + human_count(list.size()) + "  OF  " +
                                               human_count(all) + "  SHOWN";
  draw_collapse(frame, "collapse/left", state.layout.left, column.right,
                column.y + text_height(frame.fonts.head) / 2, true);
  draw_table_chip(frame, state, column, shown);
  head(frame, column, "TENSORS", shown);
  float room = region.max.y - column.y - frame.px(30);
  state.rows.update(frame.digest.list, state.folded, state.unfolded);
  std::uint32_t rows = state.rows.size();
  float wanted = frame.px(24) * static_cast<float>(std::max(rows, 1u));
  FooterLayout below = fit_footer(frame, column.width(), room, wanted);
  wanted = std::clamp(wanted, 0.0f, std::max(frame.px(48), room - below.height));
  if (list.size() == 0 && all > 0) {
    Column inside{draw, column.left, column.right, column.y};
    wanted = std::max(wanted, draw_empty_filter_hints(frame, state, inside));
  } else {
    draw_list(frame, state,
              {{region.min.x, column.y}, {region.max.x - 1, std::floor(column.y + wanted)}});
  }
  column.take(wanted + frame.px(24));
  draw_mesh(frame, state, column, below);
  draw_facts(frame, column, below.facts);
  draw->AddLine({region.max.x - 1, region.min.y}, {region.max.x - 1, region.max.y},
                frame.theme.line);
  end_region();
}

}  // namespace shw
