// The tokens that every colour in a view comes from (assets/theme).
#pragma once

#include <optional>
#include <string_view>

#include "core/verbs/desk_settings.h"
#include "views/color.h"

namespace shw {

struct Theme {
  Rgba background, side, field, raised, raised_hover, selected, line, strong_line;
  Rgba control, scrim;  // the edge of what takes input; what dims the desk behind a panel
  Rgba text, quiet, head;
  Rgba accent, accent_text;
  Rgba ok, ok_back, bad, bad_back, bad_text, warn, warn_back, unknown, unknown_back;
  Rgba frame, tile_line, nobody, dark_ink, light_ink;
  TilePalette tiles;
};

// Lines of "name #RRGGBB", or "tile_fall 0.16" for what is a number from 0 to 1; '#' at the start
// of a line is a comment. Nothing if a token is missing, unknown or of another kind.
std::optional<Theme> parse_theme(std::string_view text);
const Theme& theme_of(verbs::DeskTheme name);
inline const Theme& dark_theme() {
  return theme_of(verbs::DeskTheme::kDark);
}

}  // namespace shw
