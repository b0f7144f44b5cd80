// Everything that a key, a button or the command palette can do: one table, a row each, from which
// the palette is drawn too.
#pragma once

#include <span>

#include "views/action.h"

namespace shw {

// In the order of the palette, which is that of Action.
std::span<const ActionRow> all_actions();
const ActionRow& row_of(Action action);
KeyPress key_of(Action action);

bool is_possible(Action action, const Frame& frame, const DeskState& state);
// Where it is possible.
void run(Action action, Frame& frame, DeskState& state);
// The same where something may lie above the desk: what the action has nothing to do with makes
// way.
void choose(Action action, Frame& frame, DeskState& state);
// Keys that no focused text field takes.
void run_keys(Frame& frame, DeskState& state);

}  // namespace shw
