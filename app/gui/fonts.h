// The faces: Debian's fonts-inter and fonts-jetbrains-mono where they are installed, DejaVu where
// they are not, imgui's own where nothing is.
#pragma once

#include <string>

#include "views/frame.h"

namespace shw {

// Fills the atlas of the current imgui context at a scale; sizes are whole pixels.
Fonts load_fonts(float scale);
// Which files were found, for --version and for bug reports.
std::string font_report();

}  // namespace shw
