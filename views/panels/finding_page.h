// The finding that is shown: its rule, cause, evidence, subjects and remedy.
#pragma once

#include "views/parts.h"

namespace shw {

// There must be a report with findings.
void draw_finding(Frame& frame, UiState& state, Column& column);

}  // namespace shw
