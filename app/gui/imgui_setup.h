// An imgui context as every front end of ours wants it: no ini file, our style, input by hand where
// no window gives it.
#pragma once

#include "views/frame.h"

namespace shw {

// Creates the context; DestroyContext ends it. `own_input`: no backend of a window system feeds it.
void create_imgui(const Theme& theme, float scale, bool own_input);
void apply_style(const Theme& theme, float scale);

// What of the desk's look takes more than another frame: imgui's style, and letters, which are made
// anew for another scale.
struct Look {
  verbs::UiTheme theme = verbs::UiTheme::kDark;
  float scale = 0;
  friend bool operator==(const Look&, const Look&) = default;
};
// Between two frames, with the GL context current: `now` and `fonts` become what is wanted.
void follow_look(Look wanted, Look& now, Fonts& fonts);

// Of the monitor and the person's own factor; at 6 the letters take 134 MB and 0.2 s.
float total_scale(float monitor, double own);

}  // namespace shw
