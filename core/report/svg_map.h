// Tile maps as inline SVG: saved, expected and after side by side at one scale. Colours come from
// the page's style sheet, those of writers excepted.
#pragma once

#include <cstdint>
#include <string>

#include "core/mesh/mesh.h"
#include "core/report/page_parts.h"

namespace shw {

// Text as it stands in HTML and SVG: & < > " ' escaped, control bytes shown as \xNN.
std::string escaped(std::string_view text);

// The colour of a writer, the same in every picture of a page: hue along the last mesh axis,
// lightness along those before it; along all ranks where there is no mesh.
struct Palette {
  std::uint32_t inner = 1, outer = 1;
  std::string colour(std::optional<std::uint32_t> writer) const;  // "#4a73a0"
  bool is_light(std::optional<std::uint32_t> writer) const;       // dark letters stand on it
};
Palette palette_of(const Checkpoint& checkpoint, const Mesh* mesh);

// <figure> elements for one tensor: the three pictures, and the overview where there is one.
std::string svg_pictures(const TensorPictures& pictures, const Palette& palette);

}  // namespace shw
