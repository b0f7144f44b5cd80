#include "views/theme.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <set>
#include <utility>

#include "themes.h"  // kThemeTexts: the files of assets/theme, made by CMake

namespace shw {
namespace {

constexpr std::array<std::pair<std::string_view, Rgba Theme::*>, 29> kTokens{{
    {"background", &Theme::background},
    {"side", &Theme::side},
    {"field", &Theme::field},
    {"raised", &Theme::raised},
    {"raised_hover", &Theme::raised_hover},
    {"selected", &Theme::selected},
    {"line", &Theme::line},
    {"strong_line", &Theme::strong_line},
    {"control", &Theme::control},
    {"scrim", &Theme::scrim},
    {"text", &Theme::text},
    {"quiet", &Theme::quiet},
    {"head", &Theme::head},
    {"accent", &Theme::accent},
    {"accent_text", &Theme::accent_text},
    {"ok", &Theme::ok},
    {"ok_back", &Theme::ok_back},
    {"bad", &Theme::bad},
    {"bad_back", &Theme::bad_back},
    {"bad_text", &Theme::bad_text},
    {"warn", &Theme::warn},
    {"warn_back", &Theme::warn_back},
    {"unknown", &Theme::unknown},
    {"unknown_back", &Theme::unknown_back},
    {"frame", &Theme::frame},
    {"tile_line", &Theme::tile_line},
    {"nobody", &Theme::nobody},
    {"dark_ink", &Theme::dark_ink},
    {"light_ink", &Theme::light_ink},
}};

constexpr std::array<std::pair<std::string_view, float TilePalette::*>, 4> kNumbers{{
    {"tile_first_row", &TilePalette::first_row},
    {"tile_last_row", &TilePalette::last_row},
    {"tile_fall", &TilePalette::fall},
    {"tile_chroma", &TilePalette::chroma},
}};

std::optional<Rgba> parse_colour(std::string_view text) {
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  unsigned value = 0;
  auto [end, code] = std::from_chars(text.data() + 1, text.data() + 7, value, 16);
  if (code != std::errc{} || end != text.data() + 7) return std::nullopt;
  return rgb(value >> 16, (value >> 8) & 0xFF, value & 0xFF);
}

std::optional<float> parse_part(std::string_view text) {
  float value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value >= 0 && value <= 1 ? std::optional(value) : std::nullopt;
}

bool set_token(Theme& theme, std::string_view token, std::string_view value) {
  for (auto [name, member] : kTokens) {
    auto colour = name == token ? parse_colour(value) : std::nullopt;
    if (colour) return theme.*member = *colour, true;
  }
  for (auto [name, member] : kNumbers) {
    auto number = name == token ? parse_part(value) : std::nullopt;
    if (number) return theme.tiles.*member = *number, true;
  }
  return false;
}

}  // namespace

std::optional<Theme> parse_theme(std::string_view text) {
  Theme theme{};
  std::set<std::string_view> seen;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#') continue;
    std::string_view token = line.substr(0, line.find(' '));
    std::size_t at = line.find_first_not_of(' ', token.size());
    if (at == line.npos || !set_token(theme, token, line.substr(at))) return std::nullopt;
    seen.insert(token);
  }
  if (seen.size() != kTokens.size() + kNumbers.size()) return std::nullopt;
  theme.tiles.bad = theme.bad;
  theme.tiles.nobody = theme.nobody;
  theme.tiles.raised = theme.raised;
  theme.tiles.frame = theme.frame;
  return theme;
}

const Theme& theme_of(verbs::UiTheme name) {
  static const auto themes = [] {
    std::array<Theme, std::size(kThemeTexts)> parsed{};
    for (std::size_t i = 0; i < parsed.size(); ++i) {
      auto theme = parse_theme(kThemeTexts[i]);
      assert(theme.has_value());
      parsed[i] = *theme;
    }
    return parsed;
  }();
  return themes[static_cast<std::size_t>(name)];
}

}  // namespace shw
