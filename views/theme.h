// Theme tokens: the source of all colours in views (assets/theme).
#pragma once

#include <optional>
#include <string_view>

#include "core/verbs/ui_settings.h"
#include "views/color.h"

namespace shw {

struct Theme {
  Rgba background, side, field, raised, raised_hover, selected, line, strong_line;
  Rgba control, scrim;  // outline of inputs; dimming behind panels
  Rgba text, quiet, head;
  Rgba accent, accent_text;
  Rgba ok, ok_back, bad, bad_back, bad_text, warn, warn_back, unknown, unknown_back;
  Rgba frame, tile_line, nobody, dark_ink, light_ink;
  TilePalette tiles;
};

// Parses lines "name #RRGGBB", or "tile_fall 0.16" for numbers from 0 to 1; '#' at the start of a
// line begins a comment. nullopt if a token is missing, unknown or of the wrong kind.
std::optional<Theme> parse_theme(std::string_view text);
const Theme& theme_of(verbs::UiTheme name);
inline const Theme& dark_theme() {
  return theme_of(verbs::UiTheme::kDark);
}

}  // namespace shw
