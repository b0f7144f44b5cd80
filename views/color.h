// Colours as numbers: perceptual mixing, contrast, and the colour of a writer.
#pragma once

#include <cstdint>
#include <optional>

#include "core/mesh/writer_colour.h"

namespace shw {

// 0xAABBGGRR, as imgui packs them (IM_COL32).
using Rgba = std::uint32_t;

constexpr Rgba rgb(unsigned red, unsigned green, unsigned blue) {
  return 0xFF000000u | (blue << 16) | (green << 8) | red;
}
Rgba with_alpha(Rgba colour, float alpha);
Rgba mix(Rgba from, Rgba to, float amount);

// OKLCH: lightness 0 to 1, chroma about 0 to 0.3, hue in degrees. What sRGB cannot show loses
// chroma, never lightness.
Rgba from_oklch(float lightness, float chroma, float hue);

float luminance(Rgba colour);                              // WCAG relative luminance
float contrast(Rgba a, Rgba b);                            // WCAG ratio, 1 to 21
Rgba readable_on(Rgba background, Rgba dark, Rgba light);  // whichever contrasts more

// What tiles are painted with, of one theme.
struct TilePalette {
  float first_row = 0.59f, last_row = 0.70f, fall = 0.13f, chroma = 0.085f;  // WriterTones
  Rgba bad = 0, nobody = 0;    // of tiles that are wrong, and of those that no rank wrote
  Rgba raised = 0, frame = 0;  // of those that nobody has looked at, and of what stands out
  friend bool operator==(const TilePalette&, const TilePalette&) = default;
};
// A rank's colour in every picture: the hue runs along its row, each row is lighter than the one
// above.
Rgba writer_colour(std::uint32_t rank, MeshGrid grid, const TilePalette& palette);

// What tiles are coloured by: their writer, or its place on one axis of the mesh; and the one rank
// that stands out, the others being a breath of their colour.
struct Colouring {
  std::uint32_t stride = 0, size = 0;  // of the axis: (rank / stride) % size; 0: by writer
  std::optional<std::uint32_t> only;
  TilePalette palette = {};
  friend bool operator==(const Colouring&, const Colouring&) = default;
};
inline constexpr float kAside = 0.14f;  // of the colour of what does not stand out
Rgba tile_colour(std::uint32_t rank, MeshGrid grid, const Colouring& colouring);

}  // namespace shw
