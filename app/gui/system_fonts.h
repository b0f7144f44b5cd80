// System fonts for characters that the desktop's own fonts lack, found by fontconfig if it is
// installed (loaded at run time), otherwise in the usual folders.
#pragma once

#include <imgui.h>
#include <string>
#include <vector>

namespace shw {

struct SystemFont {
  std::string path;
  int index = 0;  // index in a font collection
  friend bool operator==(const SystemFont&, const SystemFont&) = default;
};

// Best first, at most eight; only outline fonts that imgui can rasterise.
std::vector<SystemFont> fonts_with(const std::vector<ImWchar>& letters);

// True if the file is an outline font: TrueType, OpenType or a collection of these, with a table of
// outlines.
bool is_outline_font(const std::string& path, int index);

}  // namespace shw
