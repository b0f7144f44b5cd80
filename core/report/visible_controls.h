// Escapes control characters just before text is written to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// Writes DEL, the controls U+0080 to U+009F and bidirectional marks as \uXXXX, which JSON reads as
// the same character, and bytes 0x80 to 0x9F that are not UTF-8 likewise. Line ends, tabs and our
// own colours (ESC) stay.
std::string with_visible_controls(std::string_view text);

}  // namespace shw
