#include "views/actions.h"

#include <algorithm>
#include <array>

#include "views/action_rows.h"

namespace shw {
namespace {

constexpr std::size_t place_of(Action action) {
  return static_cast<std::size_t>(action);
}

// One row per action, at the action's index; a test checks that none is missing.
std::array<ActionRow, kActionCount> make_table() {
  std::array<ActionRow, kActionCount> table{};
  for (auto rows : {finding_actions(), view_actions(), repair_actions(), viewer_actions(),
                    names_actions(), browser_actions(), secondary_panel_actions(), tab_actions()}) {
    for (const ActionRow& row : rows) table[place_of(row.action)] = row;
  }
  return table;
}

}  // namespace

std::span<const ActionRow> all_actions() {
  static const auto kTable = make_table();
  return kTable;
}

const ActionRow& row_of(Action action) {
  return all_actions()[place_of(action)];
}

KeyPress key_of(Action action) {
  return row_of(action).key;
}

bool is_possible(Action action, const Frame& frame, const UiState& state) {
  return row_of(action).is_possible(frame, state);
}

void run(Action action, Frame& frame, UiState& state) {
  if (is_possible(action, frame, state)) row_of(action).run(frame, state);
}

}  // namespace shw
