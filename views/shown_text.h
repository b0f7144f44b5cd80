// Replaces characters that a font cannot show: control characters, bidirectional marks, bytes that
// are not UTF-8 and characters that no font has become escapes (" ", "\x1b", "\u4e2d").
#pragma once

#include <imgui.h>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

// `buffer` holds the text if anything was escaped. Characters missing in the font are remembered
// for collect_missing_letters(). `keeps_lines`: keeps line breaks.
std::string_view shown_text(const ImFont* font, std::string_view text, std::string& buffer,
                            bool keeps_lines = false);

// Name for a list; an empty name becomes visible text.
std::string_view shown_name(std::string_view name);

// Characters that were missing since the last call, each reported only once ever, so that a font
// for them can be loaded.
std::vector<ImWchar> collect_missing_letters();
bool has_missing_letters();

}  // namespace shw
