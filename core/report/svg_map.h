// Tile maps as inline SVG: saved, expected and after side by side at one scale. Colours come from
// the page's style sheet, those of writers excepted.
#pragma once

#include <string>

#include "core/report/page_parts.h"
#include "core/report/palette.h"

namespace shw {

// Text as it stands in HTML and SVG: & < > " ' escaped, control bytes shown as \xNN.
std::string escaped(std::string_view text);

// <figure> elements for one tensor: the three pictures, and the overview where there is one.
std::string svg_pictures(const TensorPictures& pictures, const Palette& palette);

}  // namespace shw
