// The last look at a text before a terminal obeys it.
#pragma once

#include <string>
#include <string_view>

namespace shw {

// DEL, the controls U+0080 to U+009F and the marks that turn the order of letters around, each as
// \uXXXX, which JSON reads as the same letter. A byte of 0x80 to 0x9F that is not UTF-8 as well.
// Line ends, tabs and the colours of our own (ESC) stay.
std::string with_visible_controls(std::string_view text);

}  // namespace shw
