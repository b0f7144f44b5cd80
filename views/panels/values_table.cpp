// The numbers of a slice: as a table with indices, or in the cells of its heat map.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "views/panels/values_parts.h"
#include "views/text.h"

namespace shw {

using verbs::SliceValues;

// Square root of the magnitude: weights are concentrated around zero, and an outlier should not
// hide them.
Rgba value_colour(const Theme& theme, float value, float greatest) {
  if (greatest <= 0 || value == 0) return theme.raised;
  float part = std::sqrt(std::min(1.0f, std::abs(value) / greatest));
  return mix(theme.raised, value > 0 ? theme.warn : theme.unknown, 0.08f + 0.92f * part);
}

void draw_found_mark(const Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max) {
  draw->AddRect(min, max, frame.theme.text, 0, 0, frame.px(2));
}

namespace {

// Width of the longest text: a table of bfloat16 has more columns than one of float64.
float table_cell_width(const ImFont* font, const SliceValues& values) {
  constexpr std::size_t kLeast = 6, kMost = 13;  // letters
  std::size_t longest = kLeast;
  for (const std::string& text : values.table) longest = std::max(longest, text.size());
  const std::int64_t last = values.first_column + values.table_columns;
  longest = std::max(
      longest, human_count(static_cast<std::uint64_t>(std::max<std::int64_t>(last, 0))).size());
  return text_width(font, "0") * static_cast<float>(std::min(longest, kMost));
}

// The number with as many digits as fit in so many letters; empty if none do.
std::string shortened(const std::string& text, std::size_t letters) {
  if (text.size() <= letters) return text;
  double number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size()) return {};
  for (int digits = 8; digits >= 1; --digits) {
    std::string shorter = fmt::format("{:.{}g}", number, digits);
    if (shorter.size() <= letters) return shorter;
  }
  return {};
}

constexpr float kLeastLetters = 5;  // "-1.25", "0.003"

}  // namespace

bool table_fits(const Frame& frame, const SliceValues& values, ImVec2 size) {
  const ImFont* font = frame.fonts.mono_small;
  const float index = text_width(font, "0,000,000") + frame.px(10);
  const float wide = table_cell_width(font, values) + frame.px(10);
  return values.table_rows == values.rows && values.table_columns == values.columns &&
         index + wide * static_cast<float>(values.columns) <= size.x &&
         frame.px(19) * static_cast<float>(values.rows + 1) <= size.y;
}

bool cells_hold_numbers(const Frame& frame, const SliceValues& values, ImVec2 size) {
  if (values.cells.empty() || values.table_rows != values.cell_rows ||
      values.table_columns != values.cell_columns || values.cell_rows != values.rows ||
      values.cell_columns != values.columns)
    return false;
  const float wide = size.x / static_cast<float>(values.cell_columns);
  const float high = size.y / static_cast<float>(values.cell_rows);
  return wide >= text_width(frame.fonts.mono_small, "0") * kLeastLetters + frame.px(2) &&
         high >= frame.px(15);
}

void draw_cell_numbers(Frame& frame, ImDrawList* draw, const SliceValues& values, ImVec2 at,
                       ImVec2 size) {
  const ImFont* font = frame.fonts.mono_small;
  const float wide = size.x / static_cast<float>(values.cell_columns);
  const float high = size.y / static_cast<float>(values.cell_rows);
  const auto letters = static_cast<std::size_t>((wide - frame.px(2)) / text_width(font, "0"));
  for (std::int64_t r = 0; r < values.cell_rows; ++r) {
    for (std::int64_t c = 0; c < values.cell_columns; ++c) {
      const auto i = static_cast<std::size_t>(r * values.cell_columns + c);
      const verbs::ValueCell& cell = values.cells[i];
      if (cell.nan || cell.infinite || cell.missing || cell.unread) continue;  // they have a sign
      const std::string text = shortened(values.table[i], letters);
      const Rgba ground = value_colour(frame.theme, cell.value, values.greatest);
      text_from(draw, font,
                at.x + wide * (static_cast<float>(c) + 0.5f) - text_width(font, text) / 2,
                at.y + high * (static_cast<float>(r) + 0.5f),
                readable_on(ground, frame.theme.dark_ink, frame.theme.light_ink), text);
    }
  }
  if (frame.marks != nullptr)
    frame.marks->items["values/cells"] = {at.x, at.y, at.x + size.x, at.y + size.y};
}

namespace {

std::string index_text(std::int64_t first, std::int64_t i) {
  return human_count(static_cast<std::uint64_t>(first + i));
}

}  // namespace

ImVec2 cells_corner(const Frame& frame, const SliceValues& values, ImVec2 at) {
  const float index =
      text_width(frame.fonts.mono_small, index_text(values.first_row, values.rows - 1));
  return {at.x + index + frame.px(8), at.y + frame.px(18)};
}

void draw_cell_indices(Frame& frame, ImDrawList* draw, const SliceValues& values, ImVec2 at,
                       ImVec2 size) {
  const ImFont* font = frame.fonts.mono_small;
  const ImVec2 corner = cells_corner(frame, values, at);
  const float wide = (at.x + size.x - corner.x) / static_cast<float>(values.columns);
  const float high = (at.y + size.y - corner.y) / static_cast<float>(values.rows);
  for (std::int64_t c = 0; c < values.columns; ++c)
    draw_text_ending_at(draw, font, corner.x + wide * static_cast<float>(c + 1) - frame.px(4),
                        at.y + frame.px(9), frame.theme.head, index_text(values.first_column, c));
  for (std::int64_t r = 0; r < values.rows; ++r)
    draw_text_ending_at(draw, font, corner.x - frame.px(6),
                        corner.y + high * (static_cast<float>(r) + 0.5f), frame.theme.head,
                        index_text(values.first_row, r));
}

// A table with row and column indices, as large as fits.
ShownNumbers draw_table(Frame& frame, ImDrawList* draw, const SliceValues& values, ImVec2 at,
                        ImVec2 end) {
  const ImFont* font = frame.fonts.mono_small;
  float line = frame.px(19), index = text_width(font, "0,000,000") + frame.px(10);
  float wide = table_cell_width(font, values) + frame.px(10);
  auto shown_columns = std::min<std::int64_t>(
      values.table_columns, static_cast<std::int64_t>((end.x - at.x - index) / wide));
  auto shown_rows = std::min<std::int64_t>(values.table_rows,
                                           static_cast<std::int64_t>((end.y - at.y) / line) - 1);
  // Leaves a line to state what does not fit.
  const bool is_cut = shown_columns < values.columns || shown_rows < values.rows;
  if (is_cut && shown_rows > 2) {
    --shown_rows;
    std::string said = fmt::format(
        "{} × {} of {} × {} are shown.",
        human_count(static_cast<std::uint64_t>(std::max<std::int64_t>(shown_rows, 0))),
        human_count(static_cast<std::uint64_t>(std::max<std::int64_t>(shown_columns, 0))),
        human_count(static_cast<std::uint64_t>(values.rows)),
        human_count(static_cast<std::uint64_t>(values.columns)));
    const Measure small = measure_with(frame.fonts.small);
    const std::string hint = " The wheel, or Ctrl and an arrow, goes on.";
    if (small(said + hint) <= end.x - at.x) said += hint;
    text_from(draw, frame.fonts.small, at.x, at.y + line * (static_cast<float>(shown_rows) + 1.6f),
              frame.theme.quiet, elide_end(said, end.x - at.x, small));
  }
  // Scrolls so that the element that was searched for is visible.
  auto first_shown = [](std::int64_t found, std::int64_t shown, std::int64_t most) {
    return std::clamp<std::int64_t>(found - shown + 1, 0, std::max<std::int64_t>(most - shown, 0));
  };
  const verbs::ValuePlace corner{values.first_row, values.first_column};
  const verbs::ValuePlace found = values.found.value_or(corner);
  const std::int64_t first_row = first_shown(found.row - corner.row, shown_rows, values.table_rows);
  const std::int64_t first_column =
      first_shown(found.column - corner.column, shown_columns, values.table_columns);
  for (std::int64_t c = 0; c < shown_columns; ++c)
    draw_text_ending_at(draw, font, at.x + index + wide * static_cast<float>(c + 1),
                        at.y + line / 2, frame.theme.head,
                        index_text(values.first_column + first_column, c));
  for (std::int64_t r = 0; r < shown_rows; ++r) {
    float middle = at.y + line * (static_cast<float>(r) + 1.5f);
    draw_text_ending_at(draw, font, at.x + index - frame.px(10), middle, frame.theme.head,
                        index_text(values.first_row + first_row, r));
    for (std::int64_t c = 0; c < shown_columns; ++c) {
      const std::string& text = values.table[static_cast<std::size_t>(
          (first_row + r) * values.table_columns + first_column + c)];
      bool odd = text == "NaN" || text.ends_with("Infinity");
      float right = at.x + index + wide * static_cast<float>(c + 1);
      draw_text_ending_at(
          draw, font, right, middle,
          odd            ? frame.theme.bad
          : text.empty() ? frame.theme.quiet
                         : frame.theme.text,
          text.empty() ? "none" : elide_middle(text, wide - frame.px(8), measure_with(font)));
      const verbs::ValuePlace place{corner.row + first_row + r, corner.column + first_column + c};
      if (values.found == place)
        draw_found_mark(frame, draw, {right - wide + frame.px(6), middle - line / 2},
                        {right + frame.px(4), middle + line / 2});
    }
  }
  if (frame.marks != nullptr && shown_rows > 0 && shown_columns > 0)
    frame.marks->items["values/table"] = {at.x, at.y, end.x, end.y};
  return {shown_rows, shown_columns, at, end};
}

}  // namespace shw
