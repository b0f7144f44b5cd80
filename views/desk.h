// The whole window: regions, open panels and keys.
#pragma once

#include "views/ui_state.h"

namespace shw {

void draw_ui(Frame& frame, UiState& state);

}  // namespace shw
