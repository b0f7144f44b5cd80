// The list of tensors: modules with their tensors under them, only what passes the filter, only
// what is visible is drawn.
#include <fmt/core.h>

#include <algorithm>

#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

// Where every module's head stands in the list, with folded modules taking one row. Made anew when
// the list or what is folded changes: a sum over modules, not over tensors.
void index_rows(DeskState& state, const std::shared_ptr<const ListModel>& shared) {
  const ListModel& list = *shared;
  if (state.folded_for.lock() == shared && state.folded_count == state.folded.size()) return;
  state.folded_for = shared;
  state.folded_count = state.folded.size();
  state.row_of_group.clear();
  std::uint32_t row = 0;
  for (const ListGroup& group : list.groups) {
    state.row_of_group.push_back(row);
    bool folded = !state.folded.empty() && state.folded.contains(group.module);
    row += (group.module.empty() ? 0 : 1) + (folded && !group.module.empty() ? 0 : group.count);
  }
  state.row_of_group.push_back(row);
}

struct ListRow {
  const ListGroup* group = nullptr;  // the head of this module, or of the tensor
  bool is_head = false;
  std::uint32_t at = 0;  // row of the order
};

ListRow row_at(const DeskState& state, const ListModel& list, std::uint32_t row) {
  if (list.groups.empty()) return {nullptr, false, row};
  auto after = std::upper_bound(state.row_of_group.begin(), state.row_of_group.end(), row);
  auto g = static_cast<std::size_t>(after - state.row_of_group.begin() - 1);
  const ListGroup& group = list.groups[g];
  std::uint32_t inside = row - state.row_of_group[g];
  if (group.module.empty()) return {&group, false, group.first + inside};
  if (inside == 0) return {&group, true, group.first};
  return {&group, false, group.first + inside - 1};
}

std::optional<std::uint32_t> row_of(const DeskState& state, const ListModel& list, TensorId tensor,
                                    std::uint32_t rows) {
  // Only when the selection changed: a search over what passes.
  std::uint32_t at = 0;
  if (list.order == nullptr) {
    at = static_cast<std::uint32_t>(tensor);
  } else {
    auto found =
        std::find(list.order->begin(), list.order->end(), static_cast<std::uint32_t>(tensor));
    if (found == list.order->end()) return std::nullopt;
    at = static_cast<std::uint32_t>(found - list.order->begin());
  }
  if (list.groups.empty()) return at;
  auto after = std::upper_bound(list.groups.begin(), list.groups.end(), at,
                                [](std::uint32_t v, const ListGroup& g) { return v < g.first; });
  auto g = static_cast<std::size_t>(after - list.groups.begin() - 1);
  std::uint32_t head = list.groups[g].module.empty() ? 0 : 1;
  return std::min(rows - 1, state.row_of_group[g] + head + at - list.groups[g].first);
}

void draw_head_row(Frame& frame, DeskState& state, const ListGroup& group, ImVec2 at, float width,
                   float height) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  bool folded = state.folded.contains(group.module);
  if (ImGui::IsItemHovered())
    draw->AddRectFilled(at, {at.x + width, at.y + height}, frame.theme.raised);
  float x = at.x + frame.px(14), y = at.y + height / 2, s = frame.px(3.5f);
  if (folded)
    draw->AddTriangleFilled({x, y - s}, {x + 1.6f * s, y}, {x, y + s}, frame.theme.head);
  else
    draw->AddTriangleFilled({x, y - s * 0.7f}, {x + 2 * s, y - s * 0.7f}, {x + s, y + s},
                            frame.theme.head);
  const ImFont* font = frame.fonts.mono_small;
  Measure measure = [&](std::string_view t) { return text_width(font, t); };
  float room = width - frame.px(44);
  std::string count = folded ? std::to_string(group.count) : "";
  if (folded) {
    text_until(draw, font, at.x + width - frame.px(13), y, frame.theme.head, count);
    room -= text_width(font, count) + frame.px(8);
  }
  text_from(draw, font, at.x + frame.px(32), y, frame.theme.text,
            elide_path(group.module, room, measure));
}

void draw_tensor_row(Frame& frame, const ListModel& list, const ListRow& row, ImVec2 at,
                     float width, float height, bool selected) {
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const Theme& theme = frame.theme;
  TensorId tensor = list.tensor(row.at);
  if (selected) {
    draw->AddRectFilled(at, {at.x + width, at.y + height}, theme.selected);
    draw->AddRectFilled(at, {at.x + frame.px(2), at.y + height}, theme.text);
  } else if (ImGui::IsItemHovered()) {
    draw->AddRectFilled(at, {at.x + width, at.y + height}, theme.raised);
  }
  float middle = at.y + height / 2;
  std::uint8_t mark = index_of(tensor) < frame.digest.marks->size()
                          ? (*frame.digest.marks)[index_of(tensor)]
                          : std::uint8_t{0};
  ImVec2 sign{at.x + frame.px(16), middle};
  if (mark == kMended) draw_sign(frame, draw, sign, frame.px(5), Sign::kOk);
  if (mark == 3) draw_sign(frame, draw, sign, frame.px(5), Sign::kBad);
  if (mark == 2) draw_sign(frame, draw, sign, frame.px(5), Sign::kWarn);
  if (mark == 1) draw_sign(frame, draw, sign, frame.px(4), Sign::kQuiet);
  const ImFont* font = frame.fonts.mono_small;
  std::string shape = times_text(list.checkpoint->shape(tensor));
  float used = text_until(draw, font, at.x + width - frame.px(13), middle, theme.quiet, shape);
  std::string_view fqn = list.checkpoint->fqn(tensor);
  bool inside = row.group != nullptr && !row.group->module.empty();
  float indent = frame.px(inside ? 44 : 32);
  if (row.group != nullptr && !row.group->module.empty())
    fqn.remove_prefix(std::min(fqn.size(), list.prefix + row.group->module.size() + 1));
  float room = width - indent - used - frame.px(26);
  Measure measure = [&](std::string_view t) { return text_width(font, t); };
  std::string shown = elide_middle(fqn, room, measure);
  text_from(draw, font, at.x + indent, middle, theme.text, shown);
  if (ImGui::IsItemHovered() && shown != fqn && !frame.stable)
    tooltip(frame, list.checkpoint->fqn(tensor));
}

// Arrows, Home, End and pages move the selection over tensors; heads are passed over.
void list_keys(Frame& frame, DeskState& state, const ListModel& list, std::uint32_t rows,
               int page) {
  if (rows == 0 || state.map_has_keys || state.palette_open || state.browser.open ||
      state.plan_open || state.explain_open ||
      (ImGui::GetIO().WantTextInput && !state.filter_wanted))
    return;
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
  if (step == 0) return;
  std::optional<std::uint32_t> now;
  if (frame.snapshot.tensor) now = row_of(state, list, *frame.snapshot.tensor, rows);
  std::int64_t wanted = now ? std::int64_t{*now} + step : 0;
  wanted = std::clamp<std::int64_t>(wanted, 0, std::int64_t{rows} - 1);
  std::int64_t direction = step > 0 ? 1 : -1;
  while (wanted >= 0 && wanted < rows) {
    ListRow row = row_at(state, list, static_cast<std::uint32_t>(wanted));
    if (!row.is_head) {
      frame.emit(SelectTensorCommand{std::string(list.checkpoint->fqn(list.tensor(row.at)))});
      return;
    }
    wanted += direction;
    if (wanted < 0) {
      wanted = 0;
      direction = 1;
    }
  }
}

void draw_row(Frame& frame, DeskState& state, const ListModel& list, std::uint32_t at, float width,
              float height) {
  ListRow row = row_at(state, list, at);
  ImVec2 corner = ImGui::GetCursorScreenPos();
  ImGui::PushID(static_cast<int>(at));
  bool clicked = ImGui::InvisibleButton("row", {width, height});
  if (row.is_head) {
    draw_head_row(frame, state, *row.group, corner, width, height);
    if (clicked) {
      std::string module(row.group->module);
      if (state.folded.erase(module) == 0) state.folded.insert(module);
    }
  } else {
    TensorId tensor = list.tensor(row.at);
    draw_tensor_row(frame, list, row, corner, width, height, frame.snapshot.tensor == tensor);
    if (clicked) {
      state.map_has_keys = false;
      frame.emit(SelectTensorCommand{std::string(list.checkpoint->fqn(tensor))});
    }
  }
  focus_ring(frame, ImGui::GetWindowDrawList());
  if (frame.marks != nullptr) mark(frame, fmt::format("list/row/{}", at));
  ImGui::PopID();
}

}  // namespace

void draw_list(Frame& frame, DeskState& state, Region region) {
  const ListModel& list = *frame.digest.list;
  index_rows(state, frame.digest.list);
  std::uint32_t rows = list.groups.empty() ? list.size() : state.row_of_group.back();
  begin_region(frame, "list", region, frame.theme.side, true);
  float height = frame.px(24), width = region.max.x - region.min.x;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  ImGui::SetCursorPos({0, 0});
  float page = (region.max.y - region.min.y) / height;
  list_keys(frame, state, list, rows, std::max(1, static_cast<int>(page) - 1));
  if (state.shown != frame.snapshot.tensor && frame.snapshot.tensor && rows > 0) {
    state.shown = frame.snapshot.tensor;
    auto row = row_of(state, list, *frame.snapshot.tensor, rows);
    float top = row ? static_cast<float>(*row) * height : 0, scroll = ImGui::GetScrollY();
    if (row && (top < scroll || top + height > scroll + region.max.y - region.min.y))
      ImGui::SetScrollY(std::max(0.0f, top - (region.max.y - region.min.y) / 3));
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows), height);
  while (clipper.Step()) {
    for (int at = clipper.DisplayStart; at < clipper.DisplayEnd; ++at)
      draw_row(frame, state, list, static_cast<std::uint32_t>(at), width, height);
  }
  ImGui::PopStyleVar();
  end_region();
}

}  // namespace shw
