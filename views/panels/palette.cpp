// The command palette finds actions and places of the checkpoint by name.
#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>
#include <algorithm>

#include "core/verbs/names/fuzzy_match.h"
#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/map/tensor_view.h"
#include "views/panels/palette_search.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

// Either an action or a place.
struct PaletteRow {
  const ActionRow* action = nullptr;
  const FoundPlace* place = nullptr;
};

void add_actions(const Frame& frame, const UiState& state, bool called,
                 std::vector<PaletteRow>& rows) {
  std::string letters = state.palette_text;
  std::erase(letters, ' ');
  const auto first = static_cast<std::ptrdiff_t>(rows.size());
  for (const ActionRow& row : all_actions()) {
    if (row.action == Action::kPalette) continue;
    const bool is_called = has_text_ignoring_case(row.name, state.palette_text);
    if (called ? is_called : !is_called && has_letters_in_order(row.name, letters))
      rows.push_back({&row, nullptr});
  }
  std::stable_partition(rows.begin() + first, rows.end(), [&](const PaletteRow& row) {
    return is_possible(row.action->action, frame, state);
  });
}

// Rows in this order: actions whose title contains the typed text, places whose name does, actions
// with its letters in order ("ctf" finds "Colour the tiles by finding"). Possible actions come
// first.
std::vector<PaletteRow> matching(const Frame& frame, const UiState& state) {
  std::vector<PaletteRow> rows;
  add_actions(frame, state, true, rows);
  for (std::size_t i = 0; i < state.search.size(); ++i) rows.push_back({nullptr, &state.search[i]});
  add_actions(frame, state, false, rows);
  return rows;
}

// Moves the selection by keys and wheel and keeps it visible.
std::size_t move_palette_selection(const Frame& frame, UiState& state, std::size_t rows,
                                   std::size_t shown) {
  auto last = std::max(0, static_cast<int>(rows) - 1), fits = std::max(1, static_cast<int>(shown));
  int &row = state.palette_row, &first = state.palette_first;
  for (KeyPress key : frame.keys) {
    if (key.key == Key::kDown) ++row;
    if (key.key == Key::kUp) --row;
    if (key.key == Key::kPageDown) row += fits;
    if (key.key == Key::kPageUp) row -= fits;
  }
  row = std::clamp(row, 0, last);
  first = std::clamp(first, std::max(0, row - fits + 1), row);
  if (float wheel = ImGui::GetIO().MouseWheel; wheel != 0) first -= static_cast<int>(wheel * 3);
  first = std::clamp(first, 0, std::max(0, static_cast<int>(rows) - fits));
  row = std::clamp(row, first, std::max(first, std::min(last, first + fits - 1)));
  return static_cast<std::size_t>(first);
}

void go_to(const FoundPlace& place, Frame& frame, UiState& state) {
  const Checkpoint& c = *frame.snapshot.checkpoint;
  switch (place.kind) {
    case FoundKind::kFinding:
      frame.emit(SelectFindingCommand{place.index});
      break;
    case FoundKind::kTensor:
      frame.emit(SelectTensorCommand{std::string(c.fqn(TensorId{place.index}))});
      state.summary_open = false;
      break;
    case FoundKind::kRank:
      if (state.isolated != place.index) toggle_isolated_rank(frame, state, place.index);
      state.filter = "rank:" + std::to_string(place.index);
      frame.emit(FilterCommand{state.filter});
      break;
    case FoundKind::kFile:
      frame.emit(BytesCommand{BytesCommand::Go::kAt, c.file(FileId{place.index}).path, 0});
      break;
  }
  close_panels(state);
  state.palette_open = false;
}

void draw_search_field(Frame& frame, UiState& state, Column& column) {
  push_font(frame.fonts.text);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2{frame.px(10), frame.px(7)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, frame.theme.field);
  ImGui::SetCursorScreenPos({column.left, column.y});
  ImGui::SetNextItemWidth(column.width());
  if (state.palette_wanted) ImGui::SetKeyboardFocusHere();
  state.palette_wanted = false;
  InputStyle look;
  look.hint = "A command, tensor, finding, rank or file";
  look.shows_tip_by_mouse_only = true;
  if (edit_line(frame, "palette/text", state.palette_text, look,
                "A part of a name. Arrows choose a row, Enter takes it, Esc closes the list."))
    state.palette_row = state.palette_first = 0;
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  column.take(frame.px(44));
}

// True if the row was chosen.
bool draw_row(Frame& frame, UiState& state, Column& column, float line, std::size_t i,
              const PaletteRow& row) {
  const ImVec2 min{column.left - frame.px(8), column.y},
      max{column.right + frame.px(8), column.y + line};
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(static_cast<int>(i));
  const bool is_chosen = static_cast<int>(i) == state.palette_row;
  const bool possible = row.place != nullptr || is_possible(row.action->action, frame, state);
  const std::string whole = row.place != nullptr ? row.place->name : std::string(row.action->name);
  const auto tip = [&] {
    return printable(whole) + (possible ? "  (Enter)" : "\nNot possible in this state.");
  };
  const bool clicked =
      row_control(frame, "command", "palette/" + whole, {max.x - min.x, line}, is_chosen, tip);
  if (is_chosen || ImGui::IsItemHovered())
    column.draw->AddRectFilled(
        min, max, is_chosen ? frame.theme.selected : frame.theme.raised_hover, frame.px(4));
  const float middle = column.y + line / 2;
  const std::string key = row.place != nullptr                ? row.place->hint
                          : row.action->key.key == Key::kNone ? std::string()
                                                              : to_text(row.action->key);
  draw_text_ending_at(column.draw, frame.fonts.mono_small, column.right, middle, frame.theme.quiet,
                      key);
  const float room = column.width() - text_width(frame.fonts.mono_small, key) - frame.px(16);
  const Measure small = measure_with(frame.fonts.small);
  const std::string name = row.place != nullptr
                               ? elide_middle(printable(row.place->name), room, small)
                               : std::string(row.action->name);
  text_from(column.draw, frame.fonts.small, column.left, middle,
            possible ? frame.theme.text : frame.theme.head, name);
  focus_ring(frame, column.draw);
  ImGui::PopID();
  column.take(line);
  return possible && (clicked || (is_chosen && frame.pressed({Key::kEnter})));
}

}  // namespace

void draw_palette(Frame& frame, UiState& state) {
  Column column;
  continue_search(state.search, frame, state.palette_text);
  const auto rows = matching(frame, state);
  const float line = frame.px(28);
  // As many rows as fit, so that the selected one stays visible.
  const float room = (ImGui::GetIO().DisplaySize.y - frame.px(96 + 48)) / line;
  const auto fits = static_cast<std::size_t>(std::clamp(room, 3.0f, 16.0f));
  const std::size_t shown = std::min(rows.size(), fits);
  if (!begin_overlay(frame, "##palette",
                     {frame.px(640), frame.px(96) + line * static_cast<float>(fits)}, column))
    state.palette_open = false;
  draw_search_field(frame, state, column);
  const std::size_t first = move_palette_selection(frame, state, rows.size(), shown);
  std::optional<PaletteRow> chosen;
  if (rows.empty())
    text_from(column.draw, frame.fonts.small, column.left, column.y + line / 2, frame.theme.quiet,
              "No command, tensor, finding, rank or file is called so.");
  for (std::size_t i = first; i < first + shown; ++i) {
    if (draw_row(frame, state, column, line, i, rows[i])) chosen = rows[i];
  }
  if (shown < rows.size())
    text_from(column.draw, frame.fonts.small, column.left, column.y + frame.px(13),
              frame.theme.quiet,
              fmt::format("{} to {} of {}", human_count(first + 1), human_count(first + shown),
                          human_count(rows.size())));
  end_overlay();
  if (!chosen) return;
  if (chosen->place != nullptr)
    go_to(FoundPlace(*chosen->place), frame, state);
  else
    request_action(chosen->action->action, frame, state);
}

}  // namespace shw
