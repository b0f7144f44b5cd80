// Fonts of the system that have letters which the desktop's own fonts lack: asked from fontconfig
// where it is installed (loaded at run time), else looked for in the usual folders.
#pragma once

#include <imgui.h>
#include <string>
#include <vector>

namespace shw {

struct SystemFont {
  std::string path;
  int index = 0;  // in a collection
  friend bool operator==(const SystemFont&, const SystemFont&) = default;
};

// Best first, at most eight; only outline fonts that imgui can rasterise.
std::vector<SystemFont> fonts_with(const std::vector<ImWchar>& letters);

// True if the file begins as an outline font: TrueType, OpenType or a collection of them, with a
// table of outlines.
bool is_outline_font(const std::string& path, int index);

}  // namespace shw
