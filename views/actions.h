// The table of all actions with one row each; keys, buttons and the command palette use
// it.
#pragma once

#include <span>

#include "views/action.h"

namespace shw {

// In palette order, which is the order of Action.
std::span<const ActionRow> all_actions();
const ActionRow& row_of(Action action);
KeyPress key_of(Action action);

bool is_possible(Action action, const Frame& frame, const UiState& state);
// Runs the action if it is possible.
void run(Action action, Frame& frame, UiState& state);
// Handles the request for an action. If it is impossible, shows why. If it needs the repair panel
// or an answer, opens that first. Otherwise closes unrelated panels and runs it.
void request_action(Action action, Frame& frame, UiState& state);
// Handles keys that no focused text field takes.
void run_keys(Frame& frame, UiState& state);

}  // namespace shw
