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
// Runs the action while a panel may be open; closes panels that are unrelated to the
// action.
void choose(Action action, Frame& frame, UiState& state);
// Handles keys that no focused text field takes.
void run_keys(Frame& frame, UiState& state);

}  // namespace shw
