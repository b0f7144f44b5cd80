// The whole desktop: regions, what is open above them, and the keys.
#pragma once

#include "views/desk_state.h"

namespace shw {

void draw_desk(Frame& frame, DeskState& state);

}  // namespace shw
