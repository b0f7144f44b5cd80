// The tensors as a flat table instead of the map: one row each in list order, with sortable and
// resizable columns.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "views/actions.h"
#include "views/line.h"
#include "views/panels/content_panels.h"
#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::kTableColumns;
using verbs::TableColumn;

struct ColumnStyle {
  TableColumn column;
  const char* title;
  SortKey key;
  bool descends;   // the first click sorts descending
  float standard;  // default width in units of Frame::px
};
// Ordered by priority: the last ones are hidden first if names need room.
constexpr std::array<ColumnStyle, kTableColumns> kColumnLooks{{
    {TableColumn::kShape, "Shape", SortKey::kShape, true, 124},
    {TableColumn::kDtype, "Dtype", SortKey::kDtype, false, 84},
    {TableColumn::kBytes, "Bytes", SortKey::kBytes, true, 76},
    {TableColumn::kTiles, "Tiles", SortKey::kChunks, true, 58},
}};
constexpr float kLeastNames = 220, kTableRow = 24, kTableHeader = 30, kTablePad = 12;

struct TableSpans {
  float left = 0, right = 0, names = 0;  // names: right end of the name column
  std::array<float, kTableColumns> from{}, width{};
  std::size_t shown = 0;
};

TableSpans spans_in(const Frame& frame, const TableState& table, Region region) {
  TableSpans columns;
  columns.left = region.min.x + frame.px(36);
  columns.right = region.max.x - frame.px(kTablePad) - ImGui::GetStyle().ScrollbarSize;
  float room = columns.right - columns.left - frame.px(kLeastNames), taken = 0;
  for (std::size_t i = 0; i < kColumnLooks.size(); ++i) {
    auto said = static_cast<float>(table.widths[i]);
    float width = frame.px(said > 0 ? said : kColumnLooks[i].standard);
    if (taken + width > room) break;
    columns.width[i] = width;
    taken += width;
    ++columns.shown;
  }
  columns.names = columns.right - taken;
  float x = columns.names;
  for (std::size_t i = 0; i < columns.shown; ++i) {
    columns.from[i] = x;
    x += columns.width[i];
  }
  return columns;
}

std::uint32_t table_rows(const Snapshot& snapshot) {
  return snapshot.order ? static_cast<std::uint32_t>(snapshot.order->size())
                        : snapshot.checkpoint->tensor_count();
}
TensorId table_tensor(const Snapshot& snapshot, std::uint32_t row) {
  return TensorId{snapshot.order ? (*snapshot.order)[row] : row};
}
// Linear search over filtered rows, only for new selections and keys.
std::optional<std::uint32_t> table_row_of(const Snapshot& snapshot, TensorId tensor) {
  if (!snapshot.order) return static_cast<std::uint32_t>(tensor);
  auto found = std::find(snapshot.order->begin(), snapshot.order->end(), index_of(tensor));
  if (found == snapshot.order->end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - snapshot.order->begin());
}

std::string table_cell(const Checkpoint& checkpoint, TensorId tensor, TableColumn column) {
  switch (column) {
    case TableColumn::kShape:
      return times_text(checkpoint.shape(tensor));
    case TableColumn::kDtype:
      return std::string(name(checkpoint.dtype(tensor)));
    case TableColumn::kTiles:
      return human_count(checkpoint.chunks(tensor).size());
    case TableColumn::kBytes: {
      auto elements = volume(checkpoint.shape(tensor));
      double bytes = static_cast<double>(elements.value_or(0)) * size_of(checkpoint.dtype(tensor));
      return elements ? human_bytes(static_cast<std::uint64_t>(std::min(bytes, 1e18))) : "";
    }
  }
  return "";
}

// The width of the widest visible cell.
double widest_cell_width(const Frame& frame, const ColumnStyle& look, std::uint32_t first,
                         std::uint32_t last) {
  const Snapshot& s = frame.snapshot;
  float wide = text_width(frame.fonts.small, look.title) + frame.px(14);
  for (std::uint32_t row = first; row < last; ++row)
    wide = std::max(wide, text_width(frame.fonts.mono_small,
                                     table_cell(*s.checkpoint, table_tensor(s, row), look.column)));
  return static_cast<double>((wide + frame.px(kTablePad)) / frame.scale);
}

void sort_by_column(Frame& frame, UiState& state, SortKey key, bool descends) {
  bool again = state.sort.key == key;
  // The third click restores checkpoint order.
  if (again && state.sort.descending != descends)
    state.sort = {};
  else
    state.sort = {key, again ? !descends : descends};
  frame.emit(state.sort);
}

void draw_sort_sign(Frame& frame, ImDrawList* draw, float x, float middle, bool descending) {
  float s = frame.px(3), way = descending ? 1.0f : -1.0f;
  draw->AddTriangleFilled({x - s, middle - way * s * 0.7f}, {x + s, middle - way * s * 0.7f},
                          {x, middle + way * s}, frame.theme.text);
}

// A column border: drag to resize, double click to fit.
void draw_column_border(Frame& frame, UiState& state, std::size_t i, const TableSpans& columns,
                        Region header, std::uint32_t first, std::uint32_t last) {
  TableState& table = state.table;
  float x = columns.from[i];
  ImGui::SetCursorScreenPos({x - frame.px(4), header.min.y});
  ImGui::PushID(static_cast<int>(i));
  control(frame, fmt::format("table/border/{}", i), {frame.px(8), header.max.y - header.min.y},
          "Changes the width of the column: drag it. A double click fits it.");
  bool lit = ImGui::IsItemHovered() || ImGui::IsItemActive();
  if (ImGui::IsItemActivated()) {
    table.dragged = i;
    table.dragged_from = columns.width[i] / frame.scale;
    table.mouse_from = ImGui::GetMousePos().x;
  }
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    table.widths[i] = verbs::within(widest_cell_width(frame, kColumnLooks[i], first, last));
    table.dragged.reset();
  }
  if (ImGui::IsItemActive() && table.dragged == i &&
      ImGui::IsMouseDragging(ImGuiMouseButton_Left, frame.px(2))) {
    float moved = (table.mouse_from - ImGui::GetMousePos().x) / frame.scale;
    table.widths[i] = verbs::within(static_cast<double>(table.dragged_from + moved));
  }
  if (lit) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  ImGui::GetWindowDrawList()->AddLine({x, header.min.y + frame.px(7)},
                                      {x, header.max.y - frame.px(7)},
                                      lit ? frame.theme.text : frame.theme.line, frame.px(1));
  ImGui::PopID();
}

void draw_column_title(Frame& frame, UiState& state, const char* title, SortKey key, bool descends,
                       float from, float to, Region header) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  float middle = std::floor((header.min.y + header.max.y) / 2);
  ImGui::SetCursorScreenPos({from, header.min.y});
  const bool clicked = control(frame, std::string("table/") + title,
                               {std::max(1.0f, to - from), frame.px(kTableHeader)},
                               "Sorts by this column. Again: the other way round.");
  bool sorted = state.sort.key == key;
  Rgba colour = sorted || ImGui::IsItemHovered() ? frame.theme.text : frame.theme.quiet;
  focus_ring(frame, draw);
  bool at_left = key == SortKey::kName;
  float x = at_left ? from : to - text_width(frame.fonts.small, title);
  float wide = text_from(draw, frame.fonts.small, x, middle, colour, title);
  if (sorted)
    draw_sort_sign(frame, draw, at_left ? x + wide + frame.px(8) : x - frame.px(8), middle,
                   state.sort.descending);
  if (clicked) sort_by_column(frame, state, key, descends);
}

void draw_table_header(Frame& frame, UiState& state, const TableSpans& columns, Region header,
                       std::uint32_t first, std::uint32_t last) {
  begin_region(frame, "table-header", header, frame.theme.side, false);
  // Sort by finding: the marks are before the names.
  draw_column_title(frame, state, "Tensor", SortKey::kName, false, columns.left,
                    columns.names - kTablePad, header);
  float sign = header.min.x + frame.px(18), middle = (header.min.y + header.max.y) / 2;
  ImGui::SetCursorScreenPos({header.min.x, header.min.y});
  if (control(frame, "table/signs", {frame.px(34), frame.px(kTableHeader)}, Action::kSortFindings))
    sort_by_column(frame, state, SortKey::kFindings, true);
  focus_ring(frame, ImGui::GetWindowDrawList());
  if (state.sort.key == SortKey::kFindings)
    draw_sort_sign(frame, ImGui::GetWindowDrawList(), sign, middle, state.sort.descending);
  else
    ImGui::GetWindowDrawList()->AddCircle({sign, middle}, frame.px(4), frame.theme.quiet);
  for (std::size_t i = 0; i < columns.shown; ++i) {
    const ColumnStyle& look = kColumnLooks[i];
    draw_column_title(frame, state, look.title, look.key, look.descends,
                      columns.from[i] + frame.px(6),
                      columns.from[i] + columns.width[i] - frame.px(4), header);
  }
  for (std::size_t i = 0; i < columns.shown; ++i)
    draw_column_border(frame, state, i, columns, header, first, last);
  ImGui::GetWindowDrawList()->AddLine({header.min.x, header.max.y - 1},
                                      {header.max.x, header.max.y - 1}, frame.theme.line);
  end_region();
}

// Names of the visible rows, shortened so that they stay different.
std::vector<std::string> table_names(const Frame& frame, const TableSpans& columns,
                                     std::uint32_t first, std::uint32_t last) {
  const Snapshot& s = frame.snapshot;
  std::vector<std::string_view> names;
  for (std::uint32_t row = first; row < last; ++row)
    names.push_back(s.checkpoint->fqn(table_tensor(s, row)));
  return elide_apart(names, columns.names - frame.px(kTablePad) - columns.left,
                     measure_with(frame.fonts.mono_small));
}

void draw_table_row(Frame& frame, UiState& state, const TableSpans& columns, std::uint32_t row,
                    const std::string& shown, Region at) {
  const Snapshot& s = frame.snapshot;
  TensorId tensor = table_tensor(s, row);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  ImGui::SetCursorScreenPos(at.min);
  ImGui::PushID(static_cast<int>(row));
  const std::string name =
      frame.marks != nullptr ? fmt::format("table/row/{}", row) : std::string();
  const auto tip = [&] {
    return printable(s.checkpoint->fqn(tensor)) + "\nChooses it. A double click shows its map.";
  };
  bool clicked = row_control(frame, "row", name, {at.max.x - at.min.x, at.max.y - at.min.y},
                             s.tensor == tensor, tip);
  if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) state.menu = {tensor, std::nullopt, true};
  bool hovered = ImGui::IsItemHovered();
  if (s.tensor == tensor)
    draw->AddRectFilled(at.min, at.max, frame.theme.selected);
  else if (hovered)
    draw->AddRectFilled(at.min, at.max, frame.theme.raised);
  focus_ring(frame, draw);
  ImGui::PopID();
  float middle = std::floor((at.min.y + at.max.y) / 2);
  if (index_of(tensor) < frame.digest.marks->size())
    draw_mark(frame, {at.min.x + frame.px(18), middle}, (*frame.digest.marks)[index_of(tensor)]);
  const ImFont* font = frame.fonts.mono_small;
  std::string_view fqn = s.checkpoint->fqn(tensor);
  text_from(draw, font, columns.left, middle, frame.theme.text,
            fqn.empty() ? shown_name(fqn) : shown);
  for (std::size_t i = 0; i < columns.shown; ++i) {
    std::string text = elide_end(table_cell(*s.checkpoint, tensor, kColumnLooks[i].column),
                                 columns.width[i] - frame.px(10), measure_with(font));
    draw_text_ending_at(draw, font, columns.from[i] + columns.width[i] - frame.px(4), middle,
                        frame.theme.quiet, text);
  }
  if (clicked) frame.emit(SelectTensorCommand{std::string(fqn)});
  // A double click returns to the map.
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) state.table.open = false;
}

void handle_table_keys(Frame& frame, UiState& state, int page) {
  std::uint32_t rows = table_rows(frame.snapshot);
  int step = rows_to_move(frame, state, rows, page);
  if (step == 0 || rows == 0) return;
  std::optional<std::uint32_t> now;
  if (frame.snapshot.tensor) now = table_row_of(frame.snapshot, *frame.snapshot.tensor);
  std::int64_t wanted = now ? std::int64_t{*now} + step : 0;
  wanted = std::clamp<std::int64_t>(wanted, 0, std::int64_t{rows} - 1);
  state.table.moved_by_key = true;
  TensorId tensor = table_tensor(frame.snapshot, static_cast<std::uint32_t>(wanted));
  frame.emit(SelectTensorCommand{std::string(frame.snapshot.checkpoint->fqn(tensor))});
}

// Scrolls a new selection into view.
void follow_table_selection(Frame& frame, TableState& table, float room) {
  if (table.shown == frame.snapshot.tensor || !frame.snapshot.tensor) return;
  table.shown = frame.snapshot.tensor;
  auto row = table_row_of(frame.snapshot, *frame.snapshot.tensor);
  float height = frame.px(kTableRow), scroll = ImGui::GetScrollY();
  float top = row ? static_cast<float>(*row) * height : 0;
  if (row && (top < scroll || top + height > scroll + room)) {
    float to = !table.moved_by_key ? top - room / 3 : top < scroll ? top : top + height - room;
    ImGui::SetScrollY(std::max(0.0f, std::ceil(to / height) * height));
  }
  table.moved_by_key = false;
}

void draw_table_title(Frame& frame, UiState& state, Column& column) {
  const Snapshot& s = frame.snapshot;
  Line line(frame, column, 30, Gap::kMedium);
  line.text(frame.fonts.title, frame.theme.text, "Tensors");
  if (line.button_at_end("table/close", "Close",
                         Tip("Closes the table and shows the map.", Action::kTable)))
    state.table.open = false;
  std::uint32_t rows = table_rows(s), all = s.checkpoint->tensor_count();
  line.elided_text_to_end(
      frame.fonts.small, frame.theme.quiet,
      rows == all ? human_count(all) : human_count(rows) + " of " + human_count(all) + " shown");
}

}  // namespace

void toggle_table(Frame& frame, UiState& state) {
  bool hidden = viewer_is_open(frame, state);
  if (hidden) close_viewers(frame, state);
  state.table.shown.reset();
  state.table.open = hidden || !state.table.open;
}

void draw_tensor_table(Frame& frame, UiState& state, Region region) {
  state.map.hovered.reset();  // the map is hidden
  begin_region(frame, "table", region, frame.theme.background, false);
  Column column{ImGui::GetWindowDrawList(), region.min.x + frame.px(18),
                region.max.x - frame.px(16), region.min.y + frame.px(10)};
  draw_table_title(frame, state, column);
  TableSpans columns = spans_in(frame, state.table, region);
  Region header{{region.min.x, column.y}, {region.max.x, column.y + frame.px(kTableHeader)}};
  Region body{{region.min.x, header.max.y}, region.max};
  float height = frame.px(kTableRow), room = std::max(height, body.max.y - body.min.y);
  std::uint32_t rows = table_rows(frame.snapshot);
  begin_region(frame, "table-rows", body, frame.theme.background, true);
  handle_table_keys(frame, state, std::max(1, static_cast<int>(room / height) - 1));
  follow_table_selection(frame, state.table, room);
  float scroll = ImGui::GetScrollY();
  auto first = static_cast<std::uint32_t>(std::max(0.0f, std::floor(scroll / height)));
  auto last = static_cast<std::uint32_t>(std::ceil((scroll + room) / height) + 1);
  first = std::min(first, rows);
  last = std::min(last, rows);
  float wide = body.max.x - body.min.x;
  if (ImGui::GetScrollMaxY() > 0) wide -= ImGui::GetStyle().ScrollbarSize;
  std::vector<std::string> names = table_names(frame, columns, first, last);
  for (std::uint32_t row = first; row < last; ++row) {
    // Double precision: a million rows exceed the precision of float pixels.
    auto y = static_cast<float>(static_cast<double>(body.min.y) +
                                static_cast<double>(row) * static_cast<double>(height) -
                                static_cast<double>(scroll));
    draw_table_row(frame, state, columns, row, names[row - first],
                   {{body.min.x, y}, {body.min.x + wide, y + height}});
  }
  ImGui::SetCursorPosY(static_cast<float>(rows) * height);
  ImGui::Dummy({1, 0});
  end_region();
  draw_table_header(frame, state, columns, header, first, last);
  if (rows == 0) {
    Column inside{ImGui::GetWindowDrawList(), column.left, column.right, body.min.y + frame.px(14)};
    paragraph(frame, inside, frame.fonts.text, frame.theme.quiet, "No tensor passes the filter.");
  }
  end_region();
}

}  // namespace shw
