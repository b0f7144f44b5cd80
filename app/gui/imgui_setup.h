// An imgui context as every front end of ours wants it: no ini file, our style, keys by index.
#pragma once

#include "views/theme.h"

namespace shw {

// Creates the context; DestroyContext ends it. `own_keys`: no platform backend fills the key map.
void create_imgui(const Theme& theme, float scale, bool own_keys);
void apply_style(const Theme& theme, float scale);

}  // namespace shw
