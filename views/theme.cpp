#include "views/theme.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <utility>

#include "theme_dark.h"  // kDarkTheme: the text of assets/theme/dark.theme, made by CMake

namespace shw {
namespace {

constexpr std::array<std::pair<std::string_view, Rgba Theme::*>, 27> kTokens{{
    {"background", &Theme::background},
    {"side", &Theme::side},
    {"field", &Theme::field},
    {"raised", &Theme::raised},
    {"raised_hover", &Theme::raised_hover},
    {"selected", &Theme::selected},
    {"line", &Theme::line},
    {"strong_line", &Theme::strong_line},
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

std::optional<Rgba> parse_colour(std::string_view text) {
  if (text.size() != 7 || text[0] != '#') return std::nullopt;
  unsigned value = 0;
  auto [end, code] = std::from_chars(text.data() + 1, text.data() + 7, value, 16);
  if (code != std::errc{} || end != text.data() + 7) return std::nullopt;
  return rgb(value >> 16, (value >> 8) & 0xFF, value & 0xFF);
}

}  // namespace

std::optional<Theme> parse_theme(std::string_view text) {
  Theme theme{};
  std::size_t seen = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#') continue;
    std::string_view token = line.substr(0, line.find(' '));
    std::size_t at = line.find_first_not_of(' ', token.size());
    auto colour = at == line.npos ? std::nullopt : parse_colour(line.substr(at));
    bool known = false;
    for (auto [name, member] : kTokens) {
      if (name != token || !colour) continue;
      theme.*member = *colour;
      known = true;
    }
    if (!known) return std::nullopt;
    ++seen;
  }
  return seen == kTokens.size() ? std::optional(theme) : std::nullopt;
}

const Theme& dark_theme() {
  static const Theme theme = [] {
    auto parsed = parse_theme(kDarkTheme);
    assert(parsed.has_value());
    return *parsed;
  }();
  return theme;
}

}  // namespace shw
