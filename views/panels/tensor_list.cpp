// The tensor list: modules, repeated layers as one row, filtered; only visible rows are
// drawn.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "views/parts.h"
#include "views/shown_text.h"
#include "views/text.h"

namespace shw {
namespace {

// The visible rows of a frame. Their texts are shortened together, so that different names stay
// different.
struct Visible {
  std::uint32_t first = 0;
  std::vector<ListRow> rows;
  std::vector<std::string_view> names;
  std::vector<std::string> texts;
  float height = 0, width = 0;
};

// Columns from the right; columns without room are hidden.
struct Columns {
  float shape = 0, dtype = 0, bytes = 0;  // widths; 0: hidden
  float all() const { return shape + dtype + bytes; }
};

std::string bytes_text(const Checkpoint& checkpoint, TensorId tensor) {
  auto elements = volume(checkpoint.shape(tensor));
  if (!elements) return "";
  auto bytes = static_cast<double>(*elements) * size_of(checkpoint.dtype(tensor));
  return human_bytes(static_cast<std::uint64_t>(std::min(bytes, 1e18)));
}

float indent_of(const Frame& frame, const ListModel& list, const ListRow& row) {
  float layer = !list.runs.empty() && list.runs[row.run].layers > 0 ? 12 : 0;
  if (row.kind == ListRow::Kind::kRun) return frame.px(32);
  if (row.kind == ListRow::Kind::kModule) return frame.px(32 + layer);
  return frame.px((list.groups[row.group].module.empty() ? 32 : 44) + layer);
}

std::string_view name_of(const ListModel& list, const ListRow& row) {
  if (row.kind == ListRow::Kind::kRun) return list.runs[row.run].title;
  const ListGroup& group = list.groups[row.group];
  if (row.kind == ListRow::Kind::kModule) return group.module;
  std::string_view fqn = list.checkpoint->fqn(list.tensor(row.at));
  if (!group.module.empty())
    fqn.remove_prefix(std::min(fqn.size(), list.prefix + group.module.size() + 1));
  return fqn;
}

// "26 tensors each", or the number of tensors in a folded module.
std::string count_of(const ListModel& list, const ListRow& row) {
  if (row.kind == ListRow::Kind::kModule)
    return row.folded ? human_count(list.groups[row.group].count) : "";
  if (row.kind == ListRow::Kind::kTensor) return "";
  const ListRun& run = list.runs[row.run];
  std::string count = plural(run.tensors_each, "tensor");
  if (run.layers > 1) count += " each";
  if (run.gaps) count = human_count(run.layers) + " layers · " + count;
  return count;
}

Columns columns_of(const Frame& frame, const ListModel& list, const Visible& visible) {
  const ImFont* font = frame.fonts.mono_small;
  float names = 0, shapes = 0;
  for (std::size_t i = 0; i < visible.rows.size(); ++i) {
    const ListRow& row = visible.rows[i];
    if (row.kind != ListRow::Kind::kTensor) continue;
    names = std::max(names, indent_of(frame, list, row) + text_width(font, visible.names[i]));
    shapes =
        std::max(shapes, text_width(font, times_text(list.checkpoint->shape(list.tensor(row.at)))));
  }
  float room = visible.width - names - frame.px(13);
  Columns columns;
  auto take = [&](float wanted) {
    if (wanted + frame.px(12) > room) return 0.0f;
    room -= wanted + frame.px(12);
    return wanted + frame.px(12);
  };
  // Keeps room for the shape if names are shortened anyway.
  if (room < shapes + frame.px(12)) room = std::max(room, visible.width * 0.4f);
  columns.shape = take(shapes);
  if (columns.shape > 0) columns.dtype = take(text_width(font, "float8_e4m3"));
  if (columns.dtype > 0) columns.bytes = take(text_width(font, "999.9 MB"));
  return columns;
}

// Texts of the visible names, shortened per indent and kind.
void shorten(const Frame& frame, const ListModel& list, const Columns& columns, Visible& visible) {
  const ImFont* font = frame.fonts.mono_small;
  const Measure measure = measure_with(font);
  visible.texts.resize(visible.rows.size());
  auto together = [&](const std::vector<std::size_t>& which, float room) {
    std::vector<std::string_view> names;
    for (std::size_t i : which) names.push_back(visible.names[i]);
    auto texts = elide_apart(names, room, measure);
    for (std::size_t n = 0; n < which.size(); ++n) visible.texts[which[n]] = std::move(texts[n]);
  };
  std::vector<std::size_t> heads, tensors;
  float head_room = 1e9f;
  for (std::size_t i = 0; i < visible.rows.size(); ++i) {
    const ListRow& row = visible.rows[i];
    float room = visible.width - indent_of(frame, list, row) - frame.px(13);
    if (row.kind != ListRow::Kind::kTensor) {
      std::string count = count_of(list, row);
      if (!count.empty()) room -= text_width(frame.fonts.small, count) + frame.px(10);
      visible.texts[i] = visible.names[i];
      if (measure(visible.names[i]) > room) {
        head_room = std::min(head_room, room);
        heads.push_back(i);
      }
    }
    bool ends = row.kind != ListRow::Kind::kTensor ||
                (!tensors.empty() && visible.rows[tensors.back()].group != row.group);
    if (ends && !tensors.empty()) {
      together(tensors, visible.width - frame.px(13) - columns.all() -
                            indent_of(frame, list, visible.rows[tensors.back()]));
      tensors.clear();
    }
    if (row.kind == ListRow::Kind::kTensor) tensors.push_back(i);
  }
  if (!tensors.empty())
    together(tensors, visible.width - frame.px(13) - columns.all() -
                          indent_of(frame, list, visible.rows[tensors.back()]));
  together(heads, std::max(head_room, frame.px(40)));
}

Visible visible_rows(Frame& frame, const UiState& state, const ListModel& list, Region region) {
  Visible visible;
  visible.height = frame.px(24);
  visible.width = region.max.x - region.min.x;
  float scroll = ImGui::GetScrollY();
  auto from = static_cast<std::uint32_t>(std::max(0.0f, std::floor(scroll / visible.height)));
  auto to = static_cast<std::uint32_t>(
      std::ceil((scroll + region.max.y - region.min.y) / visible.height) + 1);
  visible.first = std::min(from, state.rows.size());
  for (std::uint32_t row = visible.first; row < std::min(to, state.rows.size()); ++row) {
    visible.rows.push_back(state.rows.at(row));
    visible.names.push_back(name_of(list, visible.rows.back()));
  }
  return visible;
}

// The header row of a module or layer run; folded ones show the worst mark inside.
void draw_head_row(Frame& frame, const ListModel& list, const Visible& visible, std::size_t i,
                   ImVec2 at) {
  const ListRow& row = visible.rows[i];
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const Theme& theme = frame.theme;
  if (ImGui::IsItemHovered())
    draw->AddRectFilled(at, {at.x + visible.width, at.y + visible.height}, theme.raised);
  float indent = indent_of(frame, list, row);
  float x = at.x + indent - frame.px(18), y = at.y + visible.height / 2, s = frame.px(3.5f);
  const auto& marks = *frame.digest.run_marks;
  bool is_run = row.kind == ListRow::Kind::kRun;
  std::size_t place = is_run ? list.groups.size() + row.run : row.group;
  if (row.folded && place < marks.size() && marks[place] > 1)
    draw_mark(frame, {at.x + visible.width - frame.px(4), y}, marks[place]);
  if (row.folded)
    draw->AddTriangleFilled({x, y - s}, {x + 1.6f * s, y}, {x, y + s}, theme.head);
  else
    draw->AddTriangleFilled({x, y - s * 0.7f}, {x + 2 * s, y - s * 0.7f}, {x + s, y + s},
                            theme.head);
  bool odd = is_run && list.runs[row.run].odd;
  std::string count = count_of(list, row);
  draw_text_ending_at(draw, frame.fonts.small, at.x + visible.width - frame.px(13), y,
                      odd ? theme.warn : theme.head, count);
  text_from(draw, is_run ? frame.fonts.mono_strong : frame.fonts.mono_small, at.x + indent, y,
            odd ? theme.warn : theme.text, visible.texts[i]);
  if (!ImGui::IsItemHovered() || frame.stable) return;
  if (odd)
    tooltip(frame,
            std::string(visible.names[i]) + ": has other tensors than the layers next to it");
  else if (visible.texts[i] != visible.names[i])
    tooltip(frame, visible.names[i]);
}

void draw_tensor_row(Frame& frame, const ListModel& list, const Visible& visible, std::size_t i,
                     const Columns& columns, ImVec2 at, bool selected) {
  const ListRow& row = visible.rows[i];
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const Theme& theme = frame.theme;
  TensorId tensor = list.tensor(row.at);
  ImVec2 end{at.x + visible.width, at.y + visible.height};
  if (selected) {
    draw->AddRectFilled(at, end, theme.selected);
    draw->AddRectFilled(at, {at.x + frame.px(2), end.y}, theme.text);
  } else if (ImGui::IsItemHovered()) {
    draw->AddRectFilled(at, end, theme.raised);
  }
  float middle = at.y + visible.height / 2;
  if (index_of(tensor) < frame.digest.marks->size())
    draw_mark(frame, {at.x + frame.px(16), middle}, (*frame.digest.marks)[index_of(tensor)]);
  const ImFont* font = frame.fonts.mono_small;
  const Checkpoint& checkpoint = *list.checkpoint;
  float right = end.x - frame.px(13);
  auto cell = [&](float width, std::string_view text) {
    if (width == 0) return;
    draw_text_ending_at(draw, font, right, middle, theme.quiet, text);
    right -= width;
  };
  if (columns.bytes > 0) cell(columns.bytes, bytes_text(checkpoint, tensor));
  if (columns.dtype > 0) cell(columns.dtype, name(checkpoint.dtype(tensor)));
  cell(columns.shape, times_text(checkpoint.shape(tensor)));
  text_from(draw, font, at.x + indent_of(frame, list, row), middle, theme.text,
            shown_name(visible.texts[i]));
  bool cut = visible.texts[i] != visible.names[i] || columns.shape == 0;
  if (ImGui::IsItemHovered() && cut && !frame.stable)
    tooltip(frame,
            std::string(checkpoint.fqn(tensor)) + "  " + times_text(checkpoint.shape(tensor)));
}

void fold_or_unfold(UiState& state, const ListModel& list, const ListRow& row) {
  bool is_run = row.kind == ListRow::Kind::kRun;
  FoldSet& set = is_run ? state.unfolded : state.folded;
  std::string name(is_run ? std::string_view(list.runs[row.run].title)
                          : list.groups[row.group].module);
  if (set.erase(name) == 0) set.insert(name);
}

// Expands all folds around a tensor and returns its row.
std::optional<std::uint32_t> unfold_to_tensor(UiState& state,
                                              const std::shared_ptr<const ListModel>& list,
                                              TensorId tensor) {
  auto row = state.rows.row_of(tensor);
  for (int depth = 0; row && depth < 2; ++depth) {
    ListRow there = state.rows.at(*row);
    if (there.kind == ListRow::Kind::kTensor || !there.folded) return row;
    fold_or_unfold(state, *list, there);
    state.rows.update(list, state.folded, state.unfolded);
    row = state.rows.row_of(tensor);
  }
  return row;
}

int requested_rows(const Frame& frame, std::uint32_t rows, int page) {
  int step = 0;
  for (KeyPress key : frame.keys) {
    if (key.ctrl || key.alt) continue;
    if (key.key == Key::kDown) ++step;
    if (key.key == Key::kUp) --step;
    if (key.key == Key::kPageDown) step += page;
    if (key.key == Key::kPageUp) step -= page;
    if (key.key == Key::kHome) step -= static_cast<int>(rows);
    if (key.key == Key::kEnd) step += static_cast<int>(rows);
  }
  return step;
}

// Arrows, Home, End and page keys move the selection over tensors. Headers are skipped; a folded
// header expands when reached, and its first (or last) tensor is selected.
void handle_list_keys(Frame& frame, UiState& state, const std::shared_ptr<const ListModel>& list,
                      int page) {
  std::uint32_t rows = state.rows.size();
  int step = rows_to_move(frame, state, rows, page);
  bool looks = frame.snapshot.bytes != nullptr || frame.snapshot.values != nullptr;
  if (rows == 0 || step == 0 || (state.table.open && !looks)) return;
  std::optional<std::uint32_t> now;
  if (frame.snapshot.tensor) now = state.rows.row_of(*frame.snapshot.tensor);
  std::int64_t wanted = now ? std::int64_t{*now} + step : 0;
  wanted = std::clamp<std::int64_t>(wanted, 0, std::int64_t{rows} - 1);
  std::int64_t direction = step > 0 ? 1 : -1;
  for (int turns = 0; wanted >= 0 && wanted < state.rows.size() && turns < 2;) {
    ListRow row = state.rows.at(static_cast<std::uint32_t>(wanted));
    if (row.kind == ListRow::Kind::kTensor) {
      state.rows_moved_by_key = true;
      frame.emit(SelectTensorCommand{std::string(list->checkpoint->fqn(list->tensor(row.at)))});
      return;
    }
    bool at_now = now && wanted == std::int64_t{*now};  // the selection is in this fold
    if (row.folded && !at_now) {
      std::uint32_t before = state.rows.size();
      fold_or_unfold(state, *list, row);
      state.rows.update(list, state.folded, state.unfolded);
      if (direction < 0) wanted += std::int64_t{state.rows.size()} - std::int64_t{before};
      if (direction > 0) ++wanted;
      continue;
    }
    wanted += direction;
    if (wanted < 0) {
      wanted = 0;
      direction = 1;
      ++turns;
    }
  }
}

void draw_row(Frame& frame, UiState& state, const ListModel& list, const Visible& visible,
              std::size_t i, const Columns& columns) {
  const ListRow& row = visible.rows[i];
  std::uint32_t at = visible.first + static_cast<std::uint32_t>(i);
  ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::PushID(static_cast<int>(at));
  const bool is_chosen =
      row.kind == ListRow::Kind::kTensor && frame.snapshot.tensor == list.tensor(row.at);
  const auto tip = [&] {
    if (row.kind != ListRow::Kind::kTensor) return std::string("Folds or unfolds these tensors.");
    return printable(list.checkpoint->fqn(list.tensor(row.at))) +
           "\nShows it. A right click copies it.";
  };
  const std::string name = frame.marks != nullptr ? fmt::format("list/row/{}", at) : std::string();
  bool clicked = row_control(frame, "row", name, {visible.width, visible.height}, is_chosen, tip);
  if (row.kind == ListRow::Kind::kTensor && ImGui::IsItemClicked(ImGuiMouseButton_Right))
    state.menu = {list.tensor(row.at), std::nullopt, true};
  if (row.kind != ListRow::Kind::kTensor) {
    draw_head_row(frame, list, visible, i, corner);
    if (clicked) fold_or_unfold(state, list, row);
  } else {
    TensorId tensor = list.tensor(row.at);
    draw_tensor_row(frame, list, visible, i, columns, corner, frame.snapshot.tensor == tensor);
    if (clicked) {
      state.map_has_keys = false;
      frame.emit(SelectTensorCommand{std::string(list.checkpoint->fqn(tensor))});
    }
  }
  focus_ring(frame, ImGui::GetWindowDrawList());
  ImGui::PopID();
}

// Scrolls a new selection into view and expands its fold.
void follow_selection(Frame& frame, UiState& state, Region region) {
  if (state.shown == frame.snapshot.tensor || !frame.snapshot.tensor || state.rows.size() == 0)
    return;
  state.shown = frame.snapshot.tensor;
  auto row = unfold_to_tensor(state, frame.digest.list, *frame.snapshot.tensor);
  float height = frame.px(24), room = region.max.y - region.min.y;
  float top = row ? static_cast<float>(*row) * height : 0, scroll = ImGui::GetScrollY();
  if (row && (top < scroll || top + height > scroll + room)) {
    // Keys scroll minimally; other selections are scrolled to the upper third. The first row is
    // always complete.
    const float to = !state.rows_moved_by_key ? top - room / 3
                     : top < scroll           ? top
                                              : top + height - room;
    ImGui::SetScrollY(std::max(0.0f, std::ceil(to / height) * height));
  }
  state.rows_moved_by_key = false;
}

}  // namespace

void draw_mark(Frame& frame, ImVec2 at, std::uint8_t mark) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  if (mark == kChangedByRepair) draw_sign(frame, draw, at, frame.px(5), Sign::kOk);
  if (mark == 3) draw_sign(frame, draw, at, frame.px(5), Sign::kBad);
  if (mark == 2) draw_sign(frame, draw, at, frame.px(5), Sign::kWarn);
  if (mark == 1) draw_sign(frame, draw, at, frame.px(4), Sign::kQuiet);
}

int rows_to_move(const Frame& frame, const UiState& state, std::uint32_t rows, int page) {
  if (state.map_has_keys || is_covered(state) || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup) ||
      (ImGui::GetIO().WantTextInput && !state.filter_wanted))
    return 0;
  return requested_rows(frame, rows, page);
}

void draw_list(Frame& frame, UiState& state, Region region) {
  const ListModel& list = *frame.digest.list;
  state.rows.update(frame.digest.list, state.folded, state.unfolded);
  begin_region(frame, "list", region, frame.theme.side, true);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  ImGui::SetCursorPos({0, 0});
  float page = (region.max.y - region.min.y) / frame.px(24);
  handle_list_keys(frame, state, frame.digest.list, std::max(1, static_cast<int>(page) - 1));
  follow_selection(frame, state, region);
  Visible visible = visible_rows(frame, state, list, region);
  if (ImGui::GetScrollMaxY() > 0) visible.width -= ImGui::GetStyle().ScrollbarSize;
  Columns columns = columns_of(frame, list, visible);
  shorten(frame, list, columns, visible);
  // Reserves the height above and below the visible rows, as a list clipper does.
  ImGui::SetCursorPosY(static_cast<float>(visible.first) * visible.height);
  for (std::size_t i = 0; i < visible.rows.size(); ++i)
    draw_row(frame, state, list, visible, i, columns);
  ImGui::SetCursorPosY(static_cast<float>(state.rows.size()) * visible.height);
  ImGui::Dummy({1, 0});
  ImGui::PopStyleVar();
  end_region();
}

void move_in_hidden_list(Frame& frame, UiState& state) {
  if (frame.digest.list->checkpoint == nullptr) return;
  constexpr int kPage = 10;
  state.rows.update(frame.digest.list, state.folded, state.unfolded);
  handle_list_keys(frame, state, frame.digest.list, kPage);
}

}  // namespace shw
