// The tokens that every colour in a view comes from (assets/theme).
#pragma once

#include <optional>
#include <string_view>

#include "views/color.h"

namespace shw {

struct Theme {
  Rgba background, side, field, raised, raised_hover, selected, line, strong_line;
  Rgba text, quiet, head;
  Rgba accent, accent_text;
  Rgba ok, ok_back, bad, bad_back, bad_text, warn, warn_back, unknown, unknown_back;
  Rgba frame, tile_line, nobody, dark_ink, light_ink;
};

// Lines of "name #RRGGBB"; '#' at the start of a line is a comment. Nothing if a token is missing,
// unknown or no colour.
std::optional<Theme> parse_theme(std::string_view text);
const Theme& dark_theme();

}  // namespace shw
