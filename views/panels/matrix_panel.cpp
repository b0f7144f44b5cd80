// The overview's matrix: kinds of tensors down, layers across, coloured by findings, difference,
// NaN, norm, zeros or bytes. A click selects the tensor.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "views/actions.h"
#include "views/line.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr float kLabelledRow = 17, kMaxHigh = 340, kMaxHighBelow = 150;
// Where there is room, a row grows up to kHighestRow pixels high and a cell up to six times as
// wide.
constexpr float kHighestRow = 44, kCell = 36;
constexpr float kAroundMatrix = 36;  // its title, and the gap below
constexpr std::array kMatrixNames{"findings", "difference", "NaN", "norm", "zeros", "bytes"};

Rgba difference_colour(const Theme& theme, const MatrixCell& cell, double most_differing) {
  const auto kind = static_cast<DifferenceKind>(cell.difference - 1);
  if (kind == DifferenceKind::kRenamed || kind == DifferenceKind::kUndecided) return theme.warn;
  if (kind != DifferenceKind::kValues) return theme.bad;
  return mix(theme.control, theme.bad, static_cast<float>(difference_tint(cell, most_differing)));
}

Rgba cell_colour(const Frame& frame, MatrixBy by, const MatrixCell& cell,
                 const LayerMatrix& matrix) {
  const Theme& theme = frame.theme;
  const Rgba calm = theme.control;
  switch (by) {
    case MatrixBy::kFindings:
      if (cell.mark == kChangedByRepair) return theme.ok;
      return cell.mark > 2 ? theme.bad : cell.mark == 2 ? theme.warn : calm;
    case MatrixBy::kDifference:
      return cell.difference == 0 ? calm : difference_colour(theme, cell, matrix.most_differing);
    case MatrixBy::kNan:
      if (!cell.is_read) return theme.raised;
      if (cell.nan != 0) return theme.bad;
      // Nothing is known of the elements that were not read.
      return cell.absent != 0 ? mix(theme.raised, theme.unknown, 0.4f) : mix(calm, theme.ok, 0.5f);
    case MatrixBy::kNorm: {
      if (!cell.is_read) return theme.raised;
      // A norm of eight times or an eighth of the kind's median has the full colour.
      const auto part = static_cast<float>(std::clamp(std::abs(cell.change) / 3, 0.0, 1.0));
      return mix(calm, cell.change > 0 ? theme.warn : theme.unknown, part);
    }
    case MatrixBy::kZeros: {
      if (!cell.is_read || cell.elements == 0) return theme.raised;
      const double part = static_cast<double>(cell.zero) / static_cast<double>(cell.elements);
      return mix(calm, theme.warn, static_cast<float>(std::sqrt(std::min(1.0, part))));
    }
    case MatrixBy::kBytes:
      break;
  }
  const double most_bytes = matrix.most_bytes;
  if (cell.bytes <= 0 || most_bytes <= 0) return theme.raised;
  // Six decades of sizes: a bias has a millionth of an embedding.
  const double part = 1 + std::log10(cell.bytes / most_bytes) / 6;
  return mix(theme.raised, theme.unknown, static_cast<float>(std::clamp(part, 0.05, 1.0)));
}

std::string cell_text(const Frame& frame, const LayerMatrix& matrix, std::size_t row,
                      std::size_t kind) {
  const MatrixCell& cell = matrix.cell(row, kind);
  std::string text = fmt::format("{}{}.{}", matrix.before, matrix.layers[row], matrix.kinds[kind]);
  if (cell.tensors == 0) return text + "\nno such tensor";
  text += "\n" + plural(cell.tensors, "tensor") + ", " +
          human_bytes(static_cast<std::uint64_t>(std::min(cell.bytes, 1e18)));
  const auto& finding_of = frame.digest.about->finding_of;
  if (cell.mark > 1 && cell.first < finding_of.size() && finding_of[cell.first] != 0)
    text += "\n" + frame.snapshot.report->findings[finding_of[cell.first] - 1].rule;
  if (cell.difference != 0)
    text += "\n" + std::string(name(static_cast<DifferenceKind>(cell.difference - 1)));
  if (cell.differing_share > 0)
    text += fmt::format("\n{:.3g}% of the elements differ; at most {:.3g}% here",
                        100 * cell.differing_share, 100 * matrix.most_differing);
  if (cell.is_read)
    text += fmt::format("\n{} NaN, {} zeros in {} elements that were read", human_count(cell.nan),
                        human_count(cell.zero), human_count(cell.elements));
  if (cell.is_read && cell.absent != 0)
    text += "\n" + plural(cell.absent, "element") + (cell.absent == 1 ? " was" : " were") +
            " not read, or cannot be";
  if (matrix.has_norms && cell.is_read)
    text += fmt::format("\nL2 norm {:.5g}; root mean square {:.3g} times the median of its kind",
                        std::sqrt(cell.squares), std::exp2(cell.change));
  return text + "\nA click goes there.";
}

// The number that the colour stands for; empty if there is none.
std::string matrix_number(MatrixBy by, const MatrixCell& cell) {
  if (by == MatrixBy::kBytes)
    return human_bytes(static_cast<std::uint64_t>(std::min(cell.bytes, 1e18)));
  if (by == MatrixBy::kDifference)
    return cell.differing_share > 0 ? fmt::format("{:.3g}%", 100 * cell.differing_share)
                                    : std::string();
  if (!cell.is_read) return {};
  // As in the table of a run: a number of elements that are not all.
  const std::string part = cell.absent != 0 ? "? " : "";
  if (by == MatrixBy::kNan) return part + human_count(cell.nan);
  if (by == MatrixBy::kZeros) return part + human_count(cell.zero);
  return by == MatrixBy::kNorm ? part + fmt::format("{:.4g}", std::sqrt(cell.squares))
                               : std::string();
}

void draw_cell_number(const Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max, Rgba colour,
                      const std::string& text) {
  const ImFont* font = frame.fonts.mono_small;
  const float wide = text_width(font, text);
  if (text.empty() || wide > max.x - min.x - frame.px(8)) return;
  text_from(draw, font, (min.x + max.x - wide) / 2, (min.y + max.y) / 2,
            readable_on(colour, frame.theme.dark_ink, frame.theme.light_ink), text);
}

// The layout of one matrix in pixels.
struct MatrixArea {
  float left = 0, top = 0, wide = 0, high = 0;  // of a cell
  bool has_labels = false;
};

void draw_cells(Frame& frame, UiState& state, const Column& column, const LayerMatrix& matrix,
                const MatrixArea& area) {
  const float gap_x = area.wide >= 5 ? 1.0f : 0.0f, gap_y = area.high >= 5 ? 1.0f : 0.0f;
  const auto measure = measure_with(frame.fonts.mono_small);
  const std::vector<std::string_view> kinds(matrix.kinds.begin(), matrix.kinds.end());
  std::vector<std::string> labels;
  if (area.has_labels) labels = elide_apart(kinds, area.left - column.left - frame.px(10), measure);
  for (std::size_t kind = 0; kind < matrix.kinds.size(); ++kind) {
    const float y = area.top + area.high * static_cast<float>(kind);
    if (!ImGui::IsRectVisible({column.left, y}, {column.right, y + area.high})) continue;
    if (area.has_labels)
      text_from(column.draw, frame.fonts.mono_small, column.left, y + area.high / 2,
                mix(frame.theme.quiet, frame.theme.text, 0.6f), labels[kind]);
    for (std::size_t row = 0; row < matrix.layers.size(); ++row) {
      const MatrixCell& cell = matrix.cell(row, kind);
      if (cell.tensors == 0) continue;
      const float x = area.left + area.wide * static_cast<float>(row);
      const ImVec2 end{x + area.wide - gap_x, y + area.high - gap_y};
      const Rgba colour = cell_colour(frame, state.matrix_by, cell, matrix);
      column.draw->AddRectFilled({x, y}, end, colour);
      if (area.high > frame.px(kLabelledRow))
        draw_cell_number(frame, column.draw, {x, y}, end, colour,
                         matrix_number(state.matrix_by, cell));
    }
  }
}

// The tensor that gives the cell its colour.
std::uint32_t tensor_of(const MatrixCell& cell, MatrixBy by) {
  if (by == MatrixBy::kDifference && cell.difference != 0) return cell.most_different;
  if (by == MatrixBy::kNan && cell.nan_of_one != 0) return cell.most_nan;
  return cell.first;
}

void follow_mouse(Frame& frame, MatrixBy by, const Column& column, const LayerMatrix& matrix,
                  const MatrixArea& area, std::size_t number) {
  const float wide = area.wide * static_cast<float>(matrix.layers.size());
  const float high = area.high * static_cast<float>(matrix.kinds.size());
  ImGui::SetCursorScreenPos({area.left, area.top});
  const std::string id = fmt::format("overview/matrix/{}", number);
  const bool clicked = picture_control(frame, id, {std::max(1.0f, wide), high});
  focus_ring(frame, column.draw);
  if (!mouse_is_over()) return;
  const ImVec2 mouse = ImGui::GetMousePos();
  const auto row = static_cast<std::size_t>(std::clamp(
      (mouse.x - area.left) / area.wide, 0.0f, static_cast<float>(matrix.layers.size() - 1)));
  const auto kind = static_cast<std::size_t>(std::clamp(
      (mouse.y - area.top) / area.high, 0.0f, static_cast<float>(matrix.kinds.size() - 1)));
  const MatrixCell& cell = matrix.cell(row, kind);
  if (!frame.stable) tooltip(frame, cell_text(frame, matrix, row, kind));
  if (clicked && cell.tensors != 0)
    frame.emit(SelectTensorCommand{
        std::string(frame.snapshot.checkpoint->fqn(TensorId{tensor_of(cell, by)}))});
}

// `room`: pixels that the matrix may fill; 0: as few as it needs.
void draw_matrix(Frame& frame, UiState& state, Column& column, const LayerMatrix& matrix,
                 std::size_t number, float room) {
  const auto kinds = static_cast<float>(matrix.kinds.size());
  MatrixArea area;
  // In a low window matrices after the first are small, so that each is visible as a whole.
  constexpr float kHighWindow = 1000;
  const bool has_room = number == 0 || ImGui::GetWindowHeight() > frame.px(kHighWindow);
  const float most_high = std::max(room, frame.px(has_room ? kMaxHigh : kMaxHighBelow));
  area.has_labels = frame.px(kLabelledRow) * kinds <= most_high;
  area.high = std::max(1.0f, std::floor(most_high / kinds));
  if (area.has_labels)
    area.high = std::clamp(std::floor(room / kinds), frame.px(kLabelledRow), frame.px(kHighestRow));
  area.left = column.left +
              (area.has_labels ? std::floor(std::min(column.width() * 0.34f, frame.px(280))) : 0);
  const float most_wide = area.high > frame.px(kLabelledRow) ? 6 * area.high : frame.px(kCell);
  area.wide =
      std::min(most_wide, (column.right - area.left) / static_cast<float>(matrix.layers.size()));
  text_line(frame, column, frame.fonts.mono_small, frame.theme.quiet,
            fmt::format("{}{} to {}: {}{}", matrix.before, matrix.layers.front(),
                        matrix.layers.back(), plural(matrix.tensors, "tensor"),
                        area.has_labels ? "" : ", named under the mouse"),
            Gap::kTight);
  area.top = column.y;
  draw_cells(frame, state, column, matrix, area);
  follow_mouse(frame, state.matrix_by, column, matrix, area, number);
  column.take(area.high * kinds + frame.px(14));
}

// Colours by what was read last: by NaN if there are some, by difference after a comparison.
void colour_by_last_result(const Snapshot& snapshot, UiState& state) {
  if (state.comparison_shown.lock() != snapshot.compared) {
    state.comparison_shown = snapshot.compared;
    if (snapshot.compared != nullptr) state.matrix_by = MatrixBy::kDifference;
  }
  if (state.numbers_shown.lock() == snapshot.numbers) return;
  state.numbers_shown = snapshot.numbers;
  if (snapshot.numbers != nullptr &&
      std::ranges::any_of(snapshot.numbers->tensors,
                          [](const verbs::TensorNumbers& one) { return one.nan != 0; }))
    state.matrix_by = MatrixBy::kNan;
}

bool can_colour_matrix_by(const Frame& frame, MatrixBy by) {
  if (by == MatrixBy::kDifference) return frame.snapshot.compared != nullptr;
  const bool has_tiles = frame.snapshot.tile_values != nullptr;
  const bool has_numbers = frame.snapshot.numbers != nullptr;
  if (by == MatrixBy::kNorm) return has_numbers;
  const bool needs_values = by == MatrixBy::kNan || by == MatrixBy::kZeros;
  return !needs_values || has_tiles || has_numbers;
}

}  // namespace

void draw_matrices(Frame& frame, UiState& state, Column& column, float room) {
  const auto& matrices = frame.digest.overview->matrices;
  if (matrices.empty()) return;
  colour_by_last_result(frame.snapshot, state);
  if (!can_colour_matrix_by(frame, state.matrix_by)) state.matrix_by = MatrixBy::kFindings;
  Column beside_head = column;
  beside_head.y -= frame.px(4);
  Line line(frame, beside_head, 22);
  head(frame, column, "LAYERS BY TENSORS");
  for (std::size_t i = kMatrixNames.size(); i-- > 0;) {
    const auto by = static_cast<MatrixBy>(i);
    if (!can_colour_matrix_by(frame, by)) continue;
    const std::string label = std::string(state.matrix_by == by ? "by " : "") + kMatrixNames[i];
    if (line.chip_button_at_end(fmt::format("overview/by/{}", kMatrixNames[i]).c_str(), label,
                                std::string("Colours the cells by ") + kMatrixNames[i] + "."))
      state.matrix_by = by;
  }
  if (is_possible(Action::kTensorNumbers, frame, state) &&
      line.chip_button_at_end(
          "overview/numbers",
          "read " + human_bytes(frame.snapshot.checkpoint->tensor_bytes()) + " for NaN and norms",
          "Reads every float element: colours by NaN, norm and zeros."))
    run(Action::kTensorNumbers, frame, state);
  gap(frame, column, Gap::kTight);
  const float each = room / static_cast<float>(matrices.size()) - frame.px(kAroundMatrix);
  for (std::size_t i = 0; i < matrices.size(); ++i)
    draw_matrix(frame, state, column, matrices[i], i, room > 0 ? std::max(0.0f, each) : 0);
  gap(frame, column, Gap::kSmall);
}

}  // namespace shw
