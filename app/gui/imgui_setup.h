// Creates the imgui context of all front ends: no ini file, our style, manual input without a
// window.
#pragma once

#include "views/frame.h"

namespace shw {

// `own_input`: no window backend feeds the context. End with DestroyContext.
void create_imgui(const Theme& theme, float scale, bool own_input);
void apply_style(const Theme& theme, float scale);

// Style and scale, whose change rebuilds imgui's style and
// fonts.
struct Look {
  verbs::UiTheme theme = verbs::UiTheme::kDark;
  float scale = 0;
  std::vector<ImWchar> letters = {};  // beyond those that the fonts have; change_style adds them
  friend bool operator==(const Look&, const Look&) = default;
};
// Applies `wanted` between two frames, with a current GL context; updates `now` and `fonts`.
void change_style(Look wanted, Look& now, Fonts& fonts);

// Monitor scale times user scale; at 6 the font atlas takes 134 MB and 0.2 s.
float total_scale(float monitor, double own);

}  // namespace shw
