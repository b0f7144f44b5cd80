// Text as a font can show it. Controls, marks that turn the order of letters around, bytes that are
// not UTF-8 and letters that no font has are shown as escapes ("\n", "\x1b", "\u4e2d").
#pragma once

#include <imgui.h>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// `buffer` holds the text if anything had to be escaped. Letters that the font lacks are remembered
// for take_missing_letters(). `keeps_lines`: line ends stay.
std::string_view shown_text(const ImFont* font, std::string_view text, std::string& buffer,
                            bool keeps_lines = false);

// Names in lists: an empty one is visible.
std::string_view shown_name(std::string_view name);

// The letters that were missing since the last call, each once, for a font that has them. A letter
// is reported only once.
std::vector<ImWchar> take_missing_letters();
bool has_missing_letters();

}  // namespace shw
