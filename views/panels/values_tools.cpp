// Navigation in the values of a tensor: to an index, to the next NaN, by pages; and a copy of the
// table for numpy.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/report/text_words.h"
#include "views/actions.h"
#include "views/line.h"
#include "views/panels/panels.h"
#include "views/panels/values_parts.h"
#include "views/parts.h"

namespace shw {
namespace {

using verbs::DimRange;
using verbs::SliceValues;
using verbs::ValuesRequest;

// Shifts the window by `by` rows or columns; it shrinks to the `shown` ones, so that each comes
// into sight.
std::optional<ValuesRequest> shifted_request(const Frame& frame, const SliceValues& values, int dim,
                                             std::int64_t shown, std::int64_t by) {
  if (dim < 0 || shown <= 0) return std::nullopt;
  ValuesRequest ask = values.ask;
  DimRange& range = ask.dims[static_cast<std::size_t>(dim)];
  const std::int64_t extent =
      frame.snapshot.checkpoint->shape(values.tensor)[static_cast<std::size_t>(dim)];
  const std::int64_t size = std::min(range.last - range.first, shown);
  range = verbs::window_at(range.first + by, size, extent);
  return ask == values.ask ? std::nullopt : std::optional(std::move(ask));
}

// Ctrl and an arrow key move by a page; plain arrow keys belong to the list.
void scroll_values_by_keys(Frame& frame, const UiState& state, const SliceValues& values) {
  if (is_covered(state)) return;
  for (KeyPress key : frame.keys) {
    if (!key.ctrl || key.alt || key.shift) continue;
    const bool down = key.key == Key::kDown, up = key.key == Key::kUp;
    const bool right = key.key == Key::kRight, left = key.key == Key::kLeft;
    if (!down && !up && !right && !left) continue;
    const bool is_row = down || up;
    const std::int64_t shown = is_row ? state.values.shown_rows : state.values.shown_columns;
    auto ask = shifted_request(frame, values, is_row ? values.row_dim : values.column_dim, shown,
                               down || right ? shown : -shown);
    if (ask) frame.emit(ValuesCommand{false, std::move(*ask)});
  }
}

std::string python_dtype(Dtype dtype) {
  const std::string text(name(dtype));
  const bool is_known = text == "float64" || text == "float32" || text == "float16" ||
                        text == "bool" || text.starts_with("int") || text.starts_with("uint") ||
                        text.starts_with("complex");
  return is_known ? text : "float32";  // numpy has no bfloat16 or float8 of its own
}

std::string python_number(const std::string& text) {
  if (text == "NaN") return "np.nan";
  if (text.ends_with("Infinity")) return text.front() == '-' ? "-np.inf" : "np.inf";
  if (text == "true") return "True";
  if (text == "false") return "False";
  return text.empty() ? "np.nan" : text;
}

}  // namespace

std::optional<ValuesRequest> parse_index(std::string_view text, ExtentsView shape,
                                         const ValuesRequest& now) {
  ValuesRequest ask = now;
  std::size_t dim = 0;
  while (!text.empty()) {
    const char c = text.front();
    if (c >= '0' && c <= '9') {
      std::int64_t at = 0;
      auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), at);
      if (code != std::errc{} || dim >= ask.dims.size() || dim >= shape.size()) return std::nullopt;
      if (at >= shape[dim]) return std::nullopt;
      DimRange& range = ask.dims[dim];
      const std::int64_t most =
          dim + 1 == ask.dims.size() ? verbs::kMaxTableColumns : verbs::kMaxTableRows;
      range = range.shown ? DimRange{at, std::min(at + most, shape[dim]), true}
                          : DimRange{at, at + 1, false};
      ++dim;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      continue;
    }
    if (c != '[' && c != ']' && c != ',' && c != ' ' && c != '(' && c != ')') return std::nullopt;
    text.remove_prefix(1);
  }
  return dim == 0 ? std::nullopt : std::optional(std::move(ask));
}

std::string numpy_text(const Checkpoint& checkpoint, const SliceValues& values) {
  std::string text = "np.array([";
  for (std::int64_t r = 0; r < values.table_rows; ++r) {
    text += r == 0 ? "[" : ",\n          [";
    for (std::int64_t c = 0; c < values.table_columns; ++c)
      text += (c == 0 ? "" : ", ") +
              python_number(values.table[static_cast<std::size_t>(r * values.table_columns + c)]);
    text += "]";
  }
  ValuesRequest shown = values.ask;
  if (values.row_dim >= 0) {
    DimRange& rows = shown.dims[static_cast<std::size_t>(values.row_dim)];
    rows.last = rows.first + values.table_rows;
  }
  if (values.column_dim >= 0) {
    DimRange& columns = shown.dims[static_cast<std::size_t>(values.column_dim)];
    columns.last = columns.first + values.table_columns;
  }
  return text + "], dtype=np." + python_dtype(values.dtype) + ")  # " +
         printable(checkpoint.fqn(values.tensor)) + verbs::to_text(shown) + " " +
         std::string(name(values.dtype)) + "\n";
}

bool has_nan(const SliceValues& values) {
  return number_kind(values.dtype) == NumberKind::kFloat;
}

std::optional<verbs::SearchedValue> search_target_of_f3(const Snapshot& snapshot) {
  if (snapshot.values == nullptr || !snapshot.values->values) return std::nullopt;
  const auto& both = snapshot.values->side_by_side;
  if (both && both->difference) return verbs::SearchedValue::kDifference;
  return has_nan(*snapshot.values->values) ? std::optional(verbs::SearchedValue::kNan)
                                           : std::nullopt;
}

namespace {

// Announces a file once it is written.
void announce_saved_file(const Frame& frame, UiState& state) {
  const auto& saved = frame.snapshot.saved_values;
  if (saved == nullptr || state.values.saved.lock() == saved) return;
  state.values.saved = saved;
  std::string text = fmt::format("Wrote {} × {} values as {}, {}, to {}",
                                 human_count(static_cast<std::uint64_t>(saved->rows)),
                                 human_count(static_cast<std::uint64_t>(saved->columns)),
                                 saved->dtype, human_bytes(saved->bytes), printable(saved->path));
  if (saved->missing > 0)
    text +=
        fmt::format("; {} have no value", human_count(static_cast<std::uint64_t>(saved->missing)));
  show_toast(frame, state, std::move(text));
}

// The whole slice, not only the table below.
void draw_save_buttons(const Frame& frame, UiState& state, Line& line, const SliceValues& values) {
  for (auto kind : {verbs::ValuesFile::kNpy, verbs::ValuesFile::kCsv}) {
    const bool is_npy = kind == verbs::ValuesFile::kNpy;
    if (is_npy && verbs::npy_dtype(values.dtype).empty()) continue;
    const char* label = is_npy ? "Save .npy" : "Save .csv";
    if (!line.fits(label)) return;
    if (line.button(is_npy ? "values/npy" : "values/csv", label, Tip([&] {
                      return fmt::format(
                          "Writes {} × {} values into a new file next to the checkpoint.",
                          human_count(static_cast<std::uint64_t>(values.rows)),
                          human_count(static_cast<std::uint64_t>(values.columns)));
                    })))
      open_save_panel(frame, state, is_npy ? verbs::NewFile::kNpy : verbs::NewFile::kCsv);
  }
}

}  // namespace

void scroll_values_by_wheel(Frame& frame, const SliceValues& values, const ShownNumbers& shown) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0 || shown.rows <= 0 || frame.job.looking ||
      !ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows) ||
      !ImGui::IsMouseHoveringRect(shown.min, shown.max))
    return;
  const std::int64_t steps = io.MouseWheel > 0 ? -1 : 1;
  auto ask = io.KeyShift || values.row_dim < 0
                 ? shifted_request(frame, values, values.column_dim, shown.columns, steps)
                 : shifted_request(frame, values, values.row_dim, shown.rows,
                                   steps * std::min<std::int64_t>(3, shown.rows));
  if (ask) frame.emit(ValuesCommand{false, std::move(*ask)});
}

void draw_values_tools(Frame& frame, UiState& state, Column& column, const SliceValues& values) {
  scroll_values_by_keys(frame, state, values);
  announce_saved_file(frame, state);
  const Checkpoint& checkpoint = *frame.snapshot.checkpoint;
  Line line(frame, column, 30, Gap::kMedium);
  Extents example = copy_of(checkpoint.shape(values.tensor));
  for (std::int64_t& extent : example) extent /= 2;
  const std::string hint = "go to " + to_text(ExtentsView(example));
  if (std::exchange(state.values.index_wanted, false)) ImGui::SetKeyboardFocusHere();
  const bool entered =
      line.field("values/index", hint.c_str(), state.values.index,
                 Tip("Goes to an index: one number per dim, and Enter.", Action::kGoToIndex),
                 std::min(frame.px(240), column.width() * 0.4f), true);
  if (entered && !state.values.index.empty()) {
    auto ask = parse_index(state.values.index, checkpoint.shape(values.tensor), values.ask);
    if (ask)
      frame.emit(ValuesCommand{false, std::move(*ask)});
    else
      show_toast(frame, state,
                 "No such index: the shape is " + to_text(checkpoint.shape(values.tensor)) + ".");
  }
  auto next_button = [&](const char* id, const char* label, const char* words,
                         verbs::SearchedValue sought) {
    if (!line.fits(label)) return;
    const bool has_key = sought == search_target_of_f3(frame.snapshot);
    const Tip tip = has_key ? Tip(words, Action::kNextValue) : Tip(words);
    if (line.button(id, label, tip)) frame.emit(ValuesCommand{false, {}, sought});
  };
  if (search_target_of_f3(frame.snapshot) == verbs::SearchedValue::kDifference)
    next_button("values/difference", "Next difference",
                "Goes to the next element of the whole slice that differs.",
                verbs::SearchedValue::kDifference);
  if (has_nan(values))
    next_button("values/nan", "Next NaN", "Goes to the next NaN of the whole slice.",
                verbs::SearchedValue::kNan);
  if (values.table_rows > 0 && line.fits("Copy as numpy") &&
      line.button("values/numpy", "Copy as numpy",
                  "Copies the numbers of the table below as Python text. Ctrl and an arrow move on "
                  "by a page.")) {
    ImGui::SetClipboardText(numpy_text(checkpoint, values).c_str());
    show_toast(
        frame, state,
        fmt::format("Copied {} × {} values for numpy.", values.table_rows, values.table_columns));
  }
  draw_save_buttons(frame, state, line, values);
}

}  // namespace shw
