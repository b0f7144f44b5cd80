// Statistics of a run: modules down, steps across, oldest first. Cells are coloured by NaN or by
// the change of the norm since the previous step.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/panels/run_parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr float kModuleRow = 20, kNarrowest = 6, kWidest = 150;
constexpr float kWithNumber = 66, kWithChange = 120;  // widths from which a cell has text

// The columns that fit, from the newest on the right to the oldest on the left.
struct RunGrid {
  float left = 0, wide = 0, high = 0;   // of the cells
  std::size_t newest = 0, columns = 0;  // steps
  float x(std::size_t step) const {
    return left + wide * static_cast<float>(newest + columns - 1 - step);
  }
};

RunGrid run_grid_of(const Frame& frame, RunState& state, const RunMatrix& matrix, Region region) {
  RunGrid grid;
  const float across = region.max.x - region.min.x;
  grid.left = region.min.x + std::floor(std::min(across * 0.3f, frame.px(280)));
  const float room = region.max.x - frame.px(12) - grid.left;
  grid.wide = std::clamp(std::floor(room / static_cast<float>(matrix.steps())),
                         frame.px(kNarrowest), frame.px(kWidest));
  grid.high = frame.px(kModuleRow);
  grid.columns =
      std::min(matrix.steps(), static_cast<std::size_t>(std::max(1.0f, room / grid.wide)));
  const auto chosen = static_cast<std::size_t>(std::max(0, state.row));
  if (chosen < state.newest_column) state.newest_column = chosen;
  if (chosen >= state.newest_column + grid.columns) state.newest_column = chosen + 1 - grid.columns;
  state.newest_column = std::min(state.newest_column, matrix.steps() - grid.columns);
  grid.newest = state.newest_column;
  return grid;
}

// Colour strength for a change from 0.01 % to 100 %.
float change_colour_strength(float change) {
  const float size = std::abs(change);
  return size <= 0 ? 0 : std::clamp(0.2f + 0.2f * (std::log10(size) + 4), 0.12f, 1.0f);
}

Rgba fill_of(const Theme& theme, const RunCell& cell) {
  if (cell.is_anomalous()) return theme.bad;
  if (!cell.has_change) return theme.raised;
  return mix(theme.raised, cell.change > 0 ? theme.warn : theme.unknown,
             0.85f * change_colour_strength(cell.change));
}

std::string change_text(float change) {
  if (change == 0) return "same";
  const double percent = 100.0 * static_cast<double>(change);
  if (std::abs(percent) >= 1000) return fmt::format("×{:.3g}", 1 + percent / 100);
  return fmt::format("{:+.2g} %", percent);
}

void draw_cell_text(const Frame& frame, ImDrawList* draw, const RunGrid& grid, const RunCell& cell,
                    float x, float y) {
  const ImFont* font = frame.fonts.mono_small;
  const float middle = y + grid.high / 2, end = x + grid.wide - frame.px(6);
  const Rgba ink =
      readable_on(fill_of(frame.theme, cell), frame.theme.dark_ink, frame.theme.light_ink);
  const Measure mono = measure_with(font);
  std::string number = cell_number(cell);
  if (!cell.is_whole) number = "? " + number;
  const float used = text_from(draw, font, x + frame.px(6), middle, ink,
                               elide_end(number, grid.wide - frame.px(10), mono));
  if (!cell.has_change || grid.wide < frame.px(kWithChange)) return;
  const std::string change = change_text(cell.change);
  if (used + mono(change) + frame.px(18) < grid.wide)
    draw_text_ending_at(draw, font, end, middle, ink, change);
}

void draw_run_cell(const Frame& frame, ImDrawList* draw, const RunGrid& grid, const RunCell& cell,
                   float x, float y) {
  const Theme& theme = frame.theme;
  const float gap = grid.wide >= frame.px(10) ? 1.0f : 0.0f;
  const ImVec2 min{x, y}, max{x + grid.wide - gap, y + grid.high - 1};
  if (cell.state == RunCell::State::kAbsent) return;
  if (cell.state != RunCell::State::kCounted) {
    draw->AddRect(min, max, theme.line);
    if (cell.state == RunCell::State::kFailed && grid.wide >= frame.px(kWithNumber))
      text_from(draw, frame.fonts.mono_small, x + frame.px(6), y + grid.high / 2, theme.quiet,
                "not read");
    return;
  }
  draw->AddRectFilled(min, max, fill_of(theme, cell));
  if (!cell.is_whole) draw->AddRectFilled({x, max.y - frame.px(3)}, max, theme.unknown);
  if (grid.wide >= frame.px(kWithNumber)) draw_cell_text(frame, draw, grid, cell, x, y);
  // Frames the first NaN of a row.
  if (cell.begins)
    add_frame(draw, {x + 1, y + 1}, {max.x - 1, max.y - 1}, theme.text, 0, frame.px(2));
}

std::string run_cell_text(const Frame& frame, const RunMatrix& matrix, std::size_t row,
                          std::size_t step) {
  const RunCell& cell = matrix.cell(row, step);
  const verbs::RunSteps& run = *frame.snapshot.run;
  std::string text = run.steps[step].name + ": " + matrix.rows[row].name + "\n";
  switch (cell.state) {
    case RunCell::State::kNotCounted:
      return text + "not counted";
    case RunCell::State::kAbsent:
      return text + "no float tensor at this step";
    case RunCell::State::kFailed:
      return text + "the step could not be opened";
    case RunCell::State::kCounted:
      break;
  }
  text += fmt::format("L2 norm {:.8g}", cell.norm);
  if (cell.is_anomalous()) text += " of the finite elements";
  if (cell.has_change) text += ", " + change_text(cell.change) + " against the step before";
  if (cell.nan != 0) text += "\n" + human_count(cell.nan) + " NaN";
  if (cell.infinite != 0) text += "\n" + plural(cell.infinite, "infinite element");
  if (!cell.is_whole) text += "\nSome elements could not be read: the numbers are of the others.";
  const std::string tensor = tensor_to_open(frame.snapshot, matrix, row, step);
  return text + "\nA click opens the step" + (tensor.empty() ? "." : " at " + tensor + ".");
}

// Draws only the names that fit: every second, every third, ... of narrow columns.
void draw_step_names(const Frame& frame, ImDrawList* draw, const RunGrid& grid,
                     const RunMatrix& matrix, int chosen, float y) {
  const ImFont* font = frame.fonts.mono_small;
  const Measure mono = measure_with(font);
  float free_until = grid.left + grid.wide * static_cast<float>(grid.columns) + frame.px(8);
  for (std::size_t step = grid.newest; step < grid.newest + grid.columns; ++step) {
    const float room = std::max(grid.wide - frame.px(6), frame.px(60));
    const std::string name = elide_middle(matrix.step_names[step], room, mono);
    const float x = grid.x(step) + (grid.wide >= frame.px(kWithNumber) ? frame.px(6) : 0);
    if (x + mono(name) > free_until) continue;
    free_until = x - frame.px(8);
    text_from(draw, font, x, y,
              static_cast<int>(step) == chosen ? frame.theme.text : frame.theme.quiet, name);
  }
}

// Converts a row on the screen to a row of the matrix.
std::size_t shown_row(const RunMatrix& matrix, const RunState& state, std::size_t at) {
  return state.by_change ? matrix.by_change[at] : at;
}

void draw_grid_row(Frame& frame, ImDrawList* draw, const UiState& state, const RunGrid& grid,
                   const RunMatrix& matrix, std::size_t row, float left, float y) {
  const bool is_chosen = state.run.module && *state.run.module == row;
  if (is_chosen)
    draw->AddRectFilled({left, y}, {grid.left - frame.px(4), y + grid.high - 1},
                        frame.theme.selected, frame.px(3));
  text_from(
      draw, frame.fonts.mono_small, left + frame.px(6), y + grid.high / 2,
      row == 0 || is_chosen ? frame.theme.text : mix(frame.theme.quiet, frame.theme.text, 0.6f),
      elide_path(matrix.rows[row].name, grid.left - left - frame.px(16),
                 measure_with(frame.fonts.mono_small)));
  for (std::size_t step = grid.newest; step < grid.newest + grid.columns; ++step) {
    const RunCell& cell = matrix.cell(row, step);
    const float x = grid.x(step);
    draw_run_cell(frame, draw, grid, cell, x, y);
    if (is_chosen && static_cast<int>(step) == state.run.row)
      add_frame(draw, {x, y}, {x + grid.wide - 1, y + grid.high - 1}, frame.theme.frame, 0,
                frame.px(2));
    if (frame.marks != nullptr)
      frame.marks->items[fmt::format("run/cell/{}/{}", row, step)] = {x, y, x + grid.wide,
                                                                      y + grid.high};
  }
}

// The cell under the mouse; nullopt if there is none.
std::optional<std::pair<std::size_t, std::size_t>> cell_under_mouse(const RunMatrix& matrix,
                                                                    const RunState& state,
                                                                    const RunGrid& grid,
                                                                    float top) {
  const ImVec2 mouse = ImGui::GetMousePos();
  const float across = (mouse.x - grid.left) / grid.wide, down = (mouse.y - top) / grid.high;
  if (across < 0 || down < 0) return std::nullopt;
  const auto column = static_cast<std::size_t>(across), at = static_cast<std::size_t>(down);
  if (column >= grid.columns || at >= matrix.rows.size()) return std::nullopt;
  return std::pair(shown_row(matrix, state, at), grid.newest + grid.columns - 1 - column);
}

void scroll_to_module(const RunMatrix& matrix, RunState& state, const RunGrid& grid, float high) {
  if (!state.reveal_module || !state.module) return;
  state.reveal_module = false;
  std::size_t at = *state.module;
  if (state.by_change)
    at = static_cast<std::size_t>(std::ranges::find(matrix.by_change, at) -
                                  matrix.by_change.begin());
  const float top = grid.high * static_cast<float>(at);
  if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
  if (top + grid.high > ImGui::GetScrollY() + high) ImGui::SetScrollY(top + grid.high - high);
}

std::optional<StepChoice> draw_module_grid(Frame& frame, UiState& state, const RunMatrix& matrix,
                                           const RunGrid& grid, Region region) {
  begin_region(frame, "run/grid", region, frame.theme.background, true);
  scroll_to_module(matrix, state.run, grid, region.max.y - region.min.y);
  const float top = region.min.y - ImGui::GetScrollY();
  ImGui::SetCursorScreenPos({region.min.x, top});
  const float high = grid.high * static_cast<float>(matrix.rows.size());
  const float wide = grid.left - region.min.x + grid.wide * static_cast<float>(grid.columns);
  bool by_key = false;
  const bool pressed = picture_control(frame, "run/matrix", {wide, high}, &by_key);
  const bool hovered = mouse_is_over();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const auto first = static_cast<std::size_t>(std::max(0.0f, (region.min.y - top) / grid.high));
  const auto last =
      std::min(matrix.rows.size(), static_cast<std::size_t>((region.max.y - top) / grid.high) + 1);
  for (std::size_t at = first; at < last; ++at)
    draw_grid_row(frame, draw, state, grid, matrix, shown_row(matrix, state.run, at), region.min.x,
                  top + grid.high * static_cast<float>(at));
  focus_ring(frame, draw);
  std::optional<StepChoice> choice;
  auto under = hovered ? cell_under_mouse(matrix, state.run, grid, top) : std::nullopt;
  if (under && !frame.stable)
    tooltip(frame, run_cell_text(frame, matrix, under->first, under->second));
  // Space opens the cell selected by keys.
  if (by_key && state.run.module)
    under = std::pair(*state.run.module, static_cast<std::size_t>(state.run.row));
  if (under && (pressed || by_key))
    choice = {under->second, tensor_to_open(frame.snapshot, matrix, under->first, under->second)};
  end_region();
  return choice;
}

// The legend of the colours.
void draw_change_legend(const Frame& frame, ImDrawList* draw, float x, float right, float middle) {
  const Theme& theme = frame.theme;
  const std::array<std::pair<Rgba, const char*>, 4> parts{
      {{mix(theme.raised, theme.unknown, 0.6f), "norm smaller than at the step before"},
       {theme.raised, "as before"},
       {mix(theme.raised, theme.warn, 0.6f), "larger"},
       {theme.bad, "NaN or infinite; framed where it begins"}}};
  const float side = frame.px(11);
  for (const auto& [colour, words] : parts) {
    const float wide = side + frame.px(6) + text_width(frame.fonts.small, words) + frame.px(18);
    if (x + wide > right + frame.px(18)) return;
    draw->AddRectFilled({x, middle - side / 2}, {x + side, middle + side / 2}, colour, frame.px(2));
    draw->AddRect({x, middle - side / 2}, {x + side, middle + side / 2}, theme.strong_line,
                  frame.px(2));
    text_from(draw, frame.fonts.small, x + side + frame.px(6), middle, theme.quiet, words);
    x += wide;
  }
}

// The line that names the first NaN, with a button that opens it.
std::optional<StepChoice> draw_first_anomaly(Frame& frame, const RunMatrix& matrix,
                                             Column& column) {
  const verbs::RunSteps& run = *frame.snapshot.run;
  Line line(frame, column, 28, Gap::kSmall);
  std::optional<StepChoice> choice;
  if (matrix.first_anomaly) {
    const std::string tensor = tensor_to_open(frame.snapshot, matrix, matrix.first_anomaly->row,
                                              matrix.first_anomaly->step);
    const auto tip = [&] {
      return "Opens " + run.steps[matrix.first_anomaly->step].name + " at " + tensor + ".";
    };
    if (line.button_at_end("run/first-odd", "Open it there", tip))
      choice = {matrix.first_anomaly->step, tensor};
  }
  const bool is_whole =
      matrix.counted == run.steps.size() && matrix.failed + matrix.incomplete == 0;
  draw_sign(frame, column.draw, {line.x() + frame.px(8), line.middle()}, frame.px(8),
            matrix.first_anomaly ? Sign::kBad
            : is_whole           ? Sign::kOk
                                 : Sign::kUnknown);
  line.skip(frame.px(24));
  const std::string text = first_anomaly_text(run, matrix);
  const std::string shown = elide_end(text, line.room(), measure_with(frame.fonts.text));
  line.text(frame.fonts.text, frame.theme.text, shown);
  if (shown != text && !frame.stable &&
      ImGui::IsMouseHoveringRect({column.left, line.top()}, {line.end(), column.y}))
    tooltip(frame, text);
  return choice;
}

}  // namespace

std::string tensor_to_open(const Snapshot& snapshot, const RunMatrix& matrix, std::size_t row,
                           std::size_t step) {
  const verbs::RunNumbers& numbers = *snapshot.run_numbers;
  const verbs::StepNumbers* counted = numbers_of(numbers, snapshot.run->steps[step]);
  if (counted == nullptr || counted->error) return {};
  const auto& odd = counted->odd_tensors;
  const auto module = matrix.rows[row].module;
  if (!module) return odd.empty() ? std::string() : odd.begin()->second;
  auto found = odd.find(*module);
  return found != odd.end() ? found->second : (*numbers.modules)[*module].tensor;
}

std::string cell_number(const RunCell& cell) {
  if (cell.nan != 0) return human_count(cell.nan) + " NaN";
  if (cell.infinite != 0) return human_count(cell.infinite) + " Inf";
  return fmt::format("{:.4g}", cell.norm);
}

void move_module(const RunMatrix& matrix, RunState& state, int by) {
  if (matrix.rows.empty()) return;
  std::size_t at = state.module.value_or(0);
  if (state.by_change)
    at = static_cast<std::size_t>(std::ranges::find(matrix.by_change, at) -
                                  matrix.by_change.begin());
  const auto last = static_cast<int>(matrix.rows.size()) - 1;
  if (state.module) at = static_cast<std::size_t>(std::clamp(static_cast<int>(at) + by, 0, last));
  state.module = shown_row(matrix, state, std::min(at, matrix.rows.size() - 1));
  state.reveal_module = true;
}

std::optional<StepChoice> draw_run_matrix(Frame& frame, UiState& state, Region region) {
  const RunMatrix& matrix = *frame.digest.run;
  if (state.run.module && *state.run.module >= matrix.rows.size()) state.run.module.reset();
  Column column{ImGui::GetWindowDrawList(), region.min.x, region.max.x, region.min.y};
  Column beside_head = column;
  beside_head.y -= frame.px(5);
  head(frame, column, "NORM AND NaN BY MODULE");
  const std::string label = state.run.by_change ? "most changed first" : "by name";
  if (Line(frame, beside_head, 22)
          .chip_button_at_end(
              "run/order", label,
              "Changes the order of the modules: by name, or the most changed first.")) {
    state.run.by_change = !state.run.by_change;
    state.run.reveal_module = true;
  }
  gap(frame, column, Gap::kTight);
  auto choice = draw_first_anomaly(frame, matrix, column);
  const RunGrid grid = run_grid_of(frame, state.run, matrix, region);
  draw_step_names(frame, column.draw, grid, matrix, state.run.row, column.y + frame.px(8));
  gap(frame, column, Gap::kLarge);
  const float bottom = region.max.y - frame.px(20);
  auto clicked = draw_module_grid(frame, state, matrix, grid,
                                  {{region.min.x, column.y}, {region.max.x, bottom}});
  draw_change_legend(frame, column.draw, region.min.x, region.max.x, bottom + frame.px(11));
  return choice ? choice : clicked;
}

}  // namespace shw
