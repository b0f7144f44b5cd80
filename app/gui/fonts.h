// Loads fonts: Debian's fonts-inter and fonts-jetbrains-mono, else DejaVu, else imgui's built-in
// font.
#pragma once

#include <string>
#include <vector>

#include "views/frame.h"

namespace shw {

// Builds the font atlas of the current imgui context; sizes are whole pixels. `letters`: further
// characters, from any system font that has them.
Fonts load_fonts(float scale, const std::vector<ImWchar>& letters = {});
// The font files found, for --version and bug reports.
std::string font_report();

}  // namespace shw
