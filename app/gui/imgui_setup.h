// An imgui context as every front end of ours wants it: no ini file, our style, input by hand where
// no window gives it.
#pragma once

#include "views/theme.h"

namespace shw {

// Creates the context; DestroyContext ends it. `own_input`: no backend of a window system feeds it.
void create_imgui(const Theme& theme, float scale, bool own_input);
void apply_style(const Theme& theme, float scale);

}  // namespace shw
