// Tile maps as inline SVG: saved, expected and after, side by side at one scale. Colours come from
// the page's style sheet, except those of ranks.
#pragma once

#include <string>

#include "core/report/page_parts.h"
#include "core/report/palette.h"

namespace shw {

// Escapes text for HTML and SVG: & < > " ' as entities, control bytes as \xNN.
std::string escaped(std::string_view text);

// <figure> elements for one tensor: its chunks as saved, as expected and after the repair, and the
// overview if there is one.
std::string svg_pictures(const TensorPictures& pictures, const Palette& palette);

}  // namespace shw
