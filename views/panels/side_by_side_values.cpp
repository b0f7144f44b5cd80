// The slice in two checkpoints and its difference: three heat maps, three tables, and the number of
// differing elements.
#include <fmt/core.h>

#include <algorithm>

#include "views/panels/values_parts.h"
#include "views/text.h"

namespace shw {
namespace {

struct Pane {
  const char* id;
  std::string title;
  const verbs::SliceValues& values;
};

std::string summary_of(const verbs::ValuesDifference& difference) {
  std::uint64_t compared = difference.values.statistics.elements;
  if (difference.differing == 0)
    return fmt::format("All {} elements that were checked are the same.", human_count(compared));
  std::string text = fmt::format("{} of {} elements differ",
                                 human_count(static_cast<std::uint64_t>(difference.differing)),
                                 human_count(compared));
  if (!difference.has_numbers) return text + "; they are not numbers, so there is no distance.";
  text += fmt::format(", by {:.6g} at most", difference.greatest);
  std::uint64_t odd = difference.values.statistics.nan + difference.values.statistics.infinite;
  if (odd > 0) text += fmt::format("; {} by NaN or infinity", human_count(odd));
  return text + ".";
}

ShownNumbers draw_pane(Frame& frame, const Pane& pane, Column column, float bottom) {
  text_line(frame, column, frame.fonts.strong, frame.theme.text, pane.title, Gap::kTight);
  float room = bottom - column.y;
  if (pane.values.cells.empty() || room < frame.px(60)) return {};
  float height = std::floor(room * 0.5f);
  if (pane.values.row_dim < 0) height = std::min(height, frame.px(60));
  draw_heat_map(frame, column.draw, pane.values, {column.left, column.y}, {column.width(), height},
                pane.id);
  column.take(height + frame.px(3));
  text_line(frame, column, frame.fonts.mono_small, frame.theme.quiet,
            pane.values.greatest == 0
                ? "0"
                : fmt::format("-{0:.4g} to {0:.4g}", static_cast<double>(pane.values.greatest)),
            Gap::kTight);
  return draw_table(frame, column.draw, pane.values, {column.left, column.y},
                    {column.right, bottom});
}

}  // namespace

ShownNumbers draw_side_by_side(Frame& frame, const ShownValues& look, Column column, float bottom) {
  const verbs::ValuesDifference& difference = *look.side_by_side->difference;
  bool differs = difference.differing > 0;
  draw_sign(frame, column.draw, {column.left + frame.px(8), column.y + frame.px(10)}, frame.px(7),
            differs ? Sign::kWarn : Sign::kOk);
  Column said = column;
  said.left += frame.px(24);
  body(frame, said, summary_of(difference));
  column.y = said.y + frame.px(8);
  std::string other = frame.snapshot.compared_with;
  while (other.size() > 1 && other.ends_with('/')) other.pop_back();
  other = other.substr(other.find_last_of('/') + 1);
  Pane panes[] = {{"values/map", "A, what is open", *look.values},
                  {"values/map-b", "B, " + other, *look.side_by_side->values},
                  {"values/map-difference", "Difference (B - A)", difference.values}};
  float gap = frame.px(16), wide = (column.width() - 2 * gap) / 3;
  ShownNumbers shown;
  for (std::size_t i = 0; i < 3; ++i) {
    float left = std::floor(column.left + (wide + gap) * static_cast<float>(i));
    const ShownNumbers pane =
        draw_pane(frame, panes[i], {column.draw, left, left + std::floor(wide), column.y}, bottom);
    const ImVec2 corner = i == 0 ? pane.min : shown.min;
    shown = pane;
    shown.min = corner;
  }
  return shown;
}

}  // namespace shw
