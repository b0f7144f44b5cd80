#include "app/gui/view_state.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/parse_text.h"

namespace shw {
namespace {

constexpr std::string_view kWord = "view ";
constexpr std::array<std::string_view, 3> kPanels{"map", "overview", "table"};
constexpr std::size_t kMostDims = 64;

template <class Number>
std::optional<std::vector<Number>> numbers_of(std::string_view text) {
  std::vector<Number> numbers;
  while (!text.empty() && numbers.size() < kMostDims) {
    const std::size_t comma = std::min(text.find(','), text.size());
    auto value = parse_number<Number>(text.substr(0, comma));
    if (!value) return std::nullopt;
    numbers.push_back(*value);
    text.remove_prefix(std::min(text.size(), comma + 1));
  }
  return numbers;
}

struct ReadView {
  std::size_t panel = 0, colour = 0, matrix = 0;
  int axis = -1;
  std::optional<std::uint32_t> rank;
  WantedPlace place;
};

std::optional<std::size_t> index_in(std::span<const std::string_view> names,
                                    std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

// Assigns `from` to `to`; false if `from` is nullopt.
template <class Number>
bool put(const std::optional<Number>& from, Number& to) {
  if (from) to = *from;
  return from.has_value();
}

bool parse_zoom(std::string_view text, WantedPlace& place) {
  const auto zoom = parse_number<double>(text);
  return put(zoom, place.zoom) && place.zoom >= 1 && place.zoom <= 1e7;
}

bool parse_pan(std::string_view text, WantedPlace& place) {
  const auto pan = numbers_of<double>(text);
  if (!pan || pan->size() != 2 || !std::isfinite((*pan)[0]) || !std::isfinite((*pan)[1]))
    return false;
  place.pan_row = (*pan)[0];
  place.pan_column = (*pan)[1];
  return true;
}

bool parse_slice_indices(std::string_view text, WantedPlace& place) {
  const auto at = numbers_of<std::int64_t>(text);
  if (!at) return false;
  for (std::int64_t index : *at) place.slice.at.push_back(index);
  return true;
}

bool parse_view_member(std::string_view key, std::string_view text, ReadView& view) {
  if (key == "panel") return put(index_in(kPanels, text), view.panel);
  if (key == "colour")
    return put(parse_number<std::size_t>(text), view.colour) && view.colour < kColourings;
  if (key == "matrix")
    return put(parse_number<std::size_t>(text), view.matrix) &&
           view.matrix <= static_cast<std::size_t>(MatrixBy::kBytes);
  if (key == "axis")
    return put(parse_number<int>(text), view.axis) && view.axis >= -1 && view.axis < 1000;
  if (key == "rank") {
    view.rank = parse_number<std::uint32_t>(text);
    return view.rank.has_value();
  }
  if (key == "zoom") return parse_zoom(text, view.place);
  if (key == "pan") return parse_pan(text, view.place);
  if (key == "of") return view.place.leads_after = text == "after";
  if (key == "rows") return put(parse_number<int>(text), view.place.slice.row);
  if (key == "columns") return put(parse_number<int>(text), view.place.slice.column);
  return key == "at" && parse_slice_indices(text, view.place);
}

}  // namespace

std::string view_state_to_line(const UiState& state) {
  const MapState& map = state.map;
  std::string line = fmt::format("{}panel={} colour={} axis={} matrix={}", kWord,
                                 kPanels[state.table.open     ? 2
                                         : state.summary_open ? 1
                                                              : 0],
                                 static_cast<int>(state.colour_by), state.colour_axis,
                                 static_cast<int>(state.matrix_by));
  if (state.isolated) line += fmt::format(" rank={}", *state.isolated);
  line += fmt::format(" zoom={:.6g} pan={:.8g},{:.8g} rows={} columns={}", map.zoom, map.pan_row,
                      map.pan_column, map.slice.row, map.slice.column);
  if (map.leads_after) line += " of=after";
  if (!map.slice.at.empty()) line += " at=";
  for (std::size_t d = 0; d < map.slice.at.size(); ++d)
    line += fmt::format("{}{}", d == 0 ? "" : ",", map.slice.at[d]);
  return line;
}

bool restore_view_from_line(std::string_view line, std::optional<TensorId> tensor, UiState& state) {
  if (!line.starts_with(kWord)) return false;
  line.remove_prefix(kWord.size());
  ReadView view;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size()), is = line.find('=');
    if (is >= end ||
        !parse_view_member(line.substr(0, is), line.substr(is + 1, end - is - 1), view))
      return false;
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  state.table.open = view.panel == 2;
  state.summary_open = view.panel == 1;
  state.summary_for = tensor;
  state.colour_by = static_cast<ColourBy>(view.colour);
  state.colour_axis = view.axis;
  state.matrix_by = static_cast<MatrixBy>(view.matrix);
  state.isolated = view.rank;
  if (tensor && !view.place.slice.at.empty()) {
    view.place.tensor = *tensor;
    state.requested_place = std::move(view.place);
  }
  return true;
}

}  // namespace shw
