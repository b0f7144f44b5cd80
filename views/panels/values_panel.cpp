// The values of a slice: heat map, statistics and a table.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <cmath>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/map/tile_map.h"
#include "views/panels/content_panels.h"
#include "views/panels/values_parts.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::DimRange;
using verbs::SliceValues;
using verbs::ValueCell;
using verbs::ValuesRequest;

// Signs independent of colour: NaN is crossed out, infinity has a plus.
void draw_non_finite_cell(Frame& frame, ImDrawList* draw, const ValueCell& cell, ImVec2 min,
                          ImVec2 max) {
  const Theme& theme = frame.theme;
  if (cell.missing || cell.unread)
    draw_hatching(frame, draw, min, max, cell.unread ? theme.bad : theme.quiet);
  if (!cell.nan && !cell.infinite) return;
  // At least three pixels, so that a single cell is visible.
  ImVec2 end{std::max(max.x, min.x + 3), std::max(max.y, min.y + 3)};
  draw->AddRectFilled(min, end, cell.nan ? theme.bad : theme.frame);
  if (end.x - min.x < frame.px(7) || end.y - min.y < frame.px(7)) return;
  float thick = frame.px(1.5f), in = frame.px(2);
  if (cell.nan) {
    draw->AddLine({min.x + in, min.y + in}, {end.x - in, end.y - in}, theme.bad_text, thick);
    draw->AddLine({end.x - in, min.y + in}, {min.x + in, end.y - in}, theme.bad_text, thick);
  } else {
    float x = (min.x + end.x) / 2, y = (min.y + end.y) / 2;
    Rgba ink = readable_on(theme.frame, theme.dark_ink, theme.light_ink);
    draw->AddLine({x, min.y + in}, {x, end.y - in}, ink, thick);
    draw->AddLine({min.x + in, y}, {end.x - in, y}, ink, thick);
  }
}

// The window narrowed by `factor` around a point, inside the tensor.
ValuesRequest zoomed_request(const Frame& frame, const SliceValues& values, double row,
                             double column, double factor) {
  ValuesRequest ask = values.ask;
  ExtentsView shape = frame.snapshot.checkpoint->shape(values.tensor);
  auto narrow = [&](int dim, double at, std::int64_t count) {
    if (dim < 0) return;
    auto d = static_cast<std::size_t>(dim);
    DimRange& range = ask.dims[d];
    double wide = std::max(1.0, std::round(static_cast<double>(count) / factor));
    double middle = static_cast<double>(range.first) + at * static_cast<double>(count);
    double most = static_cast<double>(shape[d]);
    wide = std::min(wide, most);
    range.first =
        static_cast<std::int64_t>(std::clamp(std::floor(middle - wide * at), 0.0, most - wide));
    range.last = range.first + static_cast<std::int64_t>(wide);
  };
  narrow(values.row_dim, row, values.rows);
  narrow(values.column_dim, column, values.columns);
  return ask;
}

std::string place_text(const SliceValues& values, std::int64_t row, std::int64_t column) {
  Extents index;
  for (const DimRange& range : values.ask.dims) index.push_back(range.first);
  if (values.row_dim >= 0) index[static_cast<std::size_t>(values.row_dim)] = row;
  if (values.column_dim >= 0) index[static_cast<std::size_t>(values.column_dim)] = column;
  return to_text(ExtentsView(index));
}

void show_cell_tooltip(Frame& frame, const SliceValues& values, std::int64_t r, std::int64_t c) {
  const ValueCell& cell = values.cells[static_cast<std::size_t>(r * values.cell_columns + c)];
  auto edge = [](std::int64_t at, std::int64_t cells, std::int64_t of) {
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(at) * static_cast<double>(of) / static_cast<double>(cells)));
  };
  std::int64_t row = values.first_row + edge(r, values.cell_rows, values.rows);
  std::int64_t column = values.first_column + edge(c, values.cell_columns, values.columns);
  std::string text = "from " + place_text(values, row, column) + " on";
  if (cell.seen) text += fmt::format("\nlargest magnitude {:.6g}", static_cast<double>(cell.value));
  if (cell.nan) text += "\nholds NaN";
  if (cell.infinite) text += "\nholds infinity";
  if (cell.missing) text += "\nelements in no tile";
  if (cell.unread) text += "\nelements that cannot be read";
  tooltip(frame, text + "\nclick: look closer; wheel: closer and further");
}

}  // namespace

void draw_heat_map(Frame& frame, ImDrawList* draw, const SliceValues& values, ImVec2 at,
                   ImVec2 size, const char* id) {
  float high = size.y / static_cast<float>(values.cell_rows);
  float wide = size.x / static_cast<float>(values.cell_columns);
  auto corner = [&](std::int64_t r, std::int64_t c) {
    return ImVec2{std::floor(at.x + wide * static_cast<float>(c)),
                  std::floor(at.y + high * static_cast<float>(r))};
  };
  for (bool odd : {false, true}) {
    for (std::int64_t r = 0; r < values.cell_rows; ++r) {
      for (std::int64_t c = 0; c < values.cell_columns; ++c) {
        const ValueCell& cell = values.cells[static_cast<std::size_t>(r * values.cell_columns + c)];
        ImVec2 min = corner(r, c), max = corner(r + 1, c + 1);
        if (!odd && cell.seen)
          draw->AddRectFilled(min, max, value_colour(frame.theme, cell.value, values.greatest));
        else if (odd && (cell.nan || cell.infinite || cell.missing || cell.unread))
          draw_non_finite_cell(frame, draw, cell, min, max);
      }
    }
  }
  if (cells_hold_numbers(frame, values, size)) draw_cell_numbers(frame, draw, values, at, size);
  if (values.found) {
    auto part = [](std::int64_t i, std::int64_t cells, std::int64_t of) {
      return std::clamp<std::int64_t>(i * cells / std::max<std::int64_t>(of, 1), 0, cells - 1);
    };
    const std::int64_t r =
        part(values.found->row - values.first_row, values.cell_rows, values.rows);
    const std::int64_t c =
        part(values.found->column - values.first_column, values.cell_columns, values.columns);
    draw_found_mark(frame, draw, corner(r, c), corner(r + 1, c + 1));
  }
  ImGui::SetCursorScreenPos(at);
  bool clicked = picture_control(frame, id, size);
  focus_ring(frame, draw);
  if (!mouse_is_over()) return;
  ImVec2 mouse = ImGui::GetMousePos();
  double row = std::clamp(static_cast<double>((mouse.y - at.y) / size.y), 0.0, 0.999);
  double column = std::clamp(static_cast<double>((mouse.x - at.x) / size.x), 0.0, 0.999);
  float wheel = ImGui::GetIO().MouseWheel;
  double factor = clicked ? 4 : wheel > 0 ? 2 : wheel < 0 ? 0.5 : 1;
  if (factor != 1) {
    ValuesRequest ask = zoomed_request(frame, values, row, column, factor);
    if (!(ask == values.ask)) frame.emit(ValuesCommand{false, std::move(ask)});
  }
  if (!frame.stable)
    show_cell_tooltip(frame, values,
                      static_cast<std::int64_t>(row * static_cast<double>(values.cell_rows)),
                      static_cast<std::int64_t>(column * static_cast<double>(values.cell_columns)));
}

namespace {

void draw_histogram(Frame& frame, Column& column, const Statistics& statistics) {
  if (statistics.histogram.empty()) return;
  head(frame, column, "HISTOGRAM", "by power of two");
  float height = frame.px(76), count = static_cast<float>(statistics.histogram.size());
  float wide = std::min(frame.px(14), column.width() / count);
  std::uint64_t most = 1;
  for (const PowerBucket& bucket : statistics.histogram) most = std::max(most, bucket.count);
  float x = column.left;
  for (const PowerBucket& bucket : statistics.histogram) {
    float part = std::sqrt(static_cast<float>(bucket.count) / static_cast<float>(most));
    float top = column.y + height - std::max(1.0f, height * part);
    column.draw->AddRectFilled({x, top}, {x + std::max(1.0f, wide - 1), column.y + height},
                               bucket.sign > 0 ? frame.theme.warn : frame.theme.unknown);
    if (!frame.stable && ImGui::IsMouseHoveringRect({x, column.y}, {x + wide, column.y + height}))
      tooltip(frame, fmt::format("{} of magnitude 2^{} to below 2^{}{}", human_count(bucket.count),
                                 bucket.exponent, bucket.exponent + 1,
                                 bucket.sign < 0 ? ", negative" : ""));
    x += wide;
  }
  auto label = [](const PowerBucket& bucket) {
    return fmt::format("{}2^{}", bucket.sign < 0 ? "-" : "", bucket.exponent);
  };
  float below = column.y + height + frame.px(9);
  float used = text_from(column.draw, frame.fonts.mono_small, column.left, below, frame.theme.quiet,
                         label(statistics.histogram.front()));
  if (statistics.histogram.size() > 1)
    draw_text_ending_at(column.draw, frame.fonts.mono_small,
                        std::max(x, column.left + used + frame.px(60)), below, frame.theme.quiet,
                        label(statistics.histogram.back()));
  column.take(height + frame.px(26));
}

void draw_statistics(Frame& frame, Column& column, const SliceValues& values) {
  const Theme& theme = frame.theme;
  const Statistics& s = values.statistics;
  head(frame, column, "STATISTICS", values.is_all() ? "" : "of what was checked");
  auto count = [&](const char* label, std::uint64_t value, Rgba colour) {
    row(frame, column, label, human_count(value), value > 0 ? colour : theme.text);
  };
  count("count", s.elements, theme.text);
  if (s.kind == NumberKind::kFloat) {
    count("NaN", s.nan, theme.bad);
    count("infinite", s.infinite, theme.bad);
  }
  count("zeros", s.zero, theme.text);
  if (values.missing > 0)
    count("in no tile", static_cast<std::uint64_t>(values.missing), theme.bad);
  if (values.unread > 0)
    count("not readable", static_cast<std::uint64_t>(values.unread), theme.bad);
  if (!s.least.empty()) row(frame, column, "min", s.least, theme.text);
  if (!s.greatest.empty()) row(frame, column, "max", s.greatest, theme.text);
  if (s.mean) row(frame, column, "mean", fmt::format("{:.6g}", *s.mean), theme.text);
  if (s.std) row(frame, column, "std", fmt::format("{:.6g}", *s.std), theme.text);
  gap(frame, column, Gap::kMedium);
  draw_histogram(frame, column, s);
}

}  // namespace

namespace {

std::string inspected_text(const SliceValues& values) {
  std::string of = fmt::format("{} × {}", human_count(static_cast<std::uint64_t>(values.rows)),
                               human_count(static_cast<std::uint64_t>(values.columns)));
  if (values.is_all()) return "all " + of + " elements were checked";
  return fmt::format("checked {} × {} of {} elements, evenly spaced",
                     human_count(static_cast<std::uint64_t>(values.sampled_rows)),
                     human_count(static_cast<std::uint64_t>(values.sampled_columns)), of);
}

// The window of the selected tile in the current slice.
std::optional<ValuesRequest> tile_request(const Frame& frame, const SliceValues& values) {
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  auto chunk = frame.snapshot.chunk;
  if (!chunk || index_of(*chunk) >= checkpoint.chunk_count() ||
      checkpoint.tensor_of(*chunk) != values.tensor)
    return std::nullopt;
  ExtentsView offsets = checkpoint.offsets(*chunk), sizes = checkpoint.sizes(*chunk);
  ValuesRequest ask = values.ask;
  if (offsets.size() != ask.dims.size() || sizes.size() != ask.dims.size()) return std::nullopt;
  if (!is_inside(offsets, sizes, checkpoint.shape(values.tensor))) return std::nullopt;
  for (std::size_t d = 0; d < ask.dims.size(); ++d) {
    if (sizes[d] == 0) return std::nullopt;
    DimRange& range = ask.dims[d];
    if (range.shown) range = {offsets[d], offsets[d] + sizes[d], true};
    if (!range.shown && (range.first < offsets[d] || range.first - offsets[d] >= sizes[d]))
      range = {offsets[d], offsets[d] + 1, false};
  }
  return ask;
}

void draw_values_buttons(Frame& frame, UiState& state, Column& column, const SliceValues* values) {
  Line line(frame, column, 30, Gap::kMedium);
  line.text(frame.fonts.title, frame.theme.text, "Values");
  if (line.button_at_end("values/close", "Close", "Closes the values and shows the map.  (Esc)"))
    close_viewers(frame, state);
  auto offer = [&](const char* id, const char* label, const char* tip,
                   std::optional<ValuesRequest> ask) {
    if (!ask || *ask == values->ask) return;
    if (line.button_at_end(id, label, tip)) frame.emit(ValuesCommand{false, std::move(*ask)});
  };
  if (values != nullptr) {
    offer("values/all", "Whole slice", "Shows all rows and columns.",
          zoomed_request(frame, *values, 0.5, 0.5, 1e-12));
    offer("values/tile", "This tile", "Shows the rows and columns of the chosen tile.",
          tile_request(frame, *values));
    ValuesRequest turned = values->ask;
    turned.transposed = !turned.transposed;
    offer("values/turn", "Transpose", "Swaps rows and columns.",
          values->row_dim >= 0 ? std::optional(std::move(turned)) : std::nullopt);
  }
  if (frame.job.looking && !frame.stable) {
    std::string text = "Reading…";
    if (frame.job.to_look > 0)
      text = fmt::format("{} of {} elements", human_count(frame.job.looked),
                         human_count(frame.job.to_look));
    draw_text_ending_at(column.draw, frame.fonts.small, line.end(), line.middle(),
                        frame.theme.quiet, text);
  }
}

ShownNumbers draw_numbers_of(Frame& frame, const SliceValues& values, Column column, float bottom) {
  float side = std::clamp(column.width() * 0.28f, frame.px(180), frame.px(300));
  Column facts{column.draw, column.right - side, column.right, column.y};
  draw_statistics(frame, facts, values);
  float right = column.right - side - frame.px(20), room = bottom - column.y;
  ImVec2 at{column.left, column.y};
  if (!values.cells.empty() && right > at.x && room > frame.px(40)) {
    float height = std::floor(room * 0.56f), width = right - at.x;
    if (values.row_dim < 0) height = std::min(height, frame.px(60));
    // A small matrix is read whole: in its cells, where the table would be cut off.
    const ImVec2 whole{width, room - frame.px(26)};
    const ImVec2 corner = cells_corner(frame, values, at);
    const ImVec2 cells{width - (corner.x - at.x), whole.y - (corner.y - at.y)};
    const bool is_in_cells = values.row_dim >= 0 && cells_hold_numbers(frame, values, cells) &&
                             !table_fits(frame, values, {width, room - height - frame.px(32)});
    if (is_in_cells) {
      draw_cell_indices(frame, column.draw, values, at, whole);
      width = cells.x;
      height = cells.y;
      at = corner;
    }
    draw_heat_map(frame, column.draw, values, at, {width, height}, "values/map");
    Column below{column.draw, at.x, right, at.y + height + frame.px(6)};
    Line scale(frame, below, 18);
    const std::string most = fmt::format("{:.4g}", static_cast<double>(values.greatest));
    scale.text(frame.fonts.mono_small, frame.theme.unknown,
               values.greatest == 0 ? most : "-" + most);
    scale.text(frame.fonts.small, frame.theme.quiet, "to");
    scale.text(frame.fonts.mono_small, frame.theme.warn, most);
    if (scale.room() > frame.px(40))
      scale.elided_text_to_end(
          frame.fonts.small, frame.theme.quiet,
          "square-root scale; a cell shows its largest magnitude; × NaN, + infinite");
    at.y = below.y;
    // Above the cells the wheel zooms.
    if (is_in_cells) return {values.rows, values.columns};
  } else if (values.cells.empty()) {
    Column said{column.draw, column.left, right, column.y};
    caption(frame, said, std::string(name(values.dtype)) + " has no numbers to draw.");
    at.y = said.y + frame.px(8);
  }
  // Below the statistics, the table can use the whole width.
  return draw_table(frame, column.draw, values, at,
                    {at.y >= facts.y ? column.right : right, bottom});
}

}  // namespace

void show_values(Frame& frame, UiState& state) {
  close_viewers(frame, state);
  ValuesCommand command;
  // Uses the slice of the map if that shows this tensor.
  const Picture* picture = frame.digest.picture.get();
  const Slice& slice = state.map.slice;
  if (picture != nullptr && state.map.of.lock() == picture->saved && frame.snapshot.tensor &&
      slice.at.size() == picture->saved->ndim()) {
    const Extents& shape = picture->saved->shape();
    for (std::size_t d = 0; d < shape.size(); ++d)
      command.ask.dims.push_back(slice.shows(d) ? DimRange{0, shape[d], true}
                                                : DimRange{slice.at[d], slice.at[d] + 1, false});
    command.ask.transposed = slice.column >= 0 && slice.row > slice.column;
  }
  auto tile = current_tile(frame, state);
  if (tile && tile != frame.snapshot.chunk) frame.emit(SelectChunkCommand{tile});
  frame.emit(std::move(command));
  state.values.open = true;
  state.values.followed = frame.snapshot.tensor;
}

void draw_values(Frame& frame, UiState& state, Region region) {
  begin_region(frame, "values", region, frame.theme.background, false);
  Column column{ImGui::GetWindowDrawList(), region.min.x + frame.px(16),
                region.max.x - frame.px(16), region.min.y + frame.px(12)};
  std::shared_ptr<const ShownValues> look = frame.snapshot.values;
  const SliceValues* values = look != nullptr && look->values ? &*look->values : nullptr;
  draw_values_buttons(frame, state, column, values);
  if (look != nullptr && state.values.followed != frame.snapshot.tensor) {
    if (state.values.followed) frame.emit(ValuesCommand{});
    state.values.followed = frame.snapshot.tensor;
  }
  // The compared checkpoint has changed: requests the same slice again.
  if (values != nullptr && state.values.compared_with != frame.snapshot.compared.get()) {
    state.values.compared_with = frame.snapshot.compared.get();
    bool is_side_by_side = frame.snapshot.compared != nullptr;
    if (is_side_by_side || look->side_by_side) frame.emit(ValuesCommand{false, values->ask});
  }
  if (values == nullptr) {
    bool failed = look != nullptr && look->error;
    paragraph(frame, column, frame.fonts.text, failed ? frame.theme.bad : frame.theme.quiet,
              failed ? look->error->place.tensor + ": " + look->error->message : "Reading…");
    end_region();
    return;
  }
  text_line(
      frame, column, frame.fonts.mono_small, frame.theme.text,
      std::string(frame.snapshot.checkpoint->fqn(values->tensor)) + verbs::to_text(values->ask),
      Gap::kTight);
  std::string said = fmt::format("{}, {}", name(values->dtype), inspected_text(*values));
  if (values->row_dim >= 0)
    said += fmt::format("; dim {} down, dim {} across", values->row_dim, values->column_dim);
  caption(frame, column, said);
  if (values->error)
    paragraph(frame, column, frame.fonts.small, frame.theme.bad,
              values->error->place.file + ": " + values->error->message);
  if (!look->not_found.empty())
    paragraph(frame, column, frame.fonts.small, frame.theme.warn, look->not_found);
  if (look->side_by_side && !look->side_by_side->note.empty())
    paragraph(frame, column, frame.fonts.small, frame.theme.warn, look->side_by_side->note);
  gap(frame, column, Gap::kSmall);
  draw_values_tools(frame, state, column, *values);
  const float bottom = region.max.y - frame.px(12);
  const bool is_side_by_side =
      look->side_by_side && look->side_by_side->difference && column.width() > frame.px(560);
  const ShownNumbers shown = is_side_by_side ? draw_side_by_side(frame, *look, column, bottom)
                                             : draw_numbers_of(frame, *values, column, bottom);
  state.values.shown_rows = shown.rows;
  state.values.shown_columns = shown.columns;
  scroll_values_by_wheel(frame, *values, shown);
  end_region();
}

}  // namespace shw
