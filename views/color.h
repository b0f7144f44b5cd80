// Colour arithmetic: perceptual mixing, contrast, and colours of ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "core/report/writer_colour.h"

namespace shw {

// 0xAABBGGRR, the packing of imgui (IM_COL32).
using Rgba = std::uint32_t;

constexpr Rgba rgb(unsigned red, unsigned green, unsigned blue) {
  return 0xFF000000u | (blue << 16) | (green << 8) | red;
}
Rgba with_alpha(Rgba colour, float alpha);
Rgba mix(Rgba from, Rgba to, float amount);

// OKLCH to sRGB: lightness 0 to 1, chroma about 0 to 0.3, hue in degrees. Out-of-gamut colours lose
// chroma, never lightness.
Rgba from_oklch(float lightness, float chroma, float hue);

float luminance(Rgba colour);                              // WCAG relative luminance
float contrast(Rgba a, Rgba b);                            // WCAG ratio, 1 to 21
Rgba readable_on(Rgba background, Rgba dark, Rgba light);  // the one with more contrast

// Colours of tiles in one theme.
struct TilePalette {
  float first_row = 0.59f, last_row = 0.70f, fall = 0.13f, chroma = 0.085f;  // RankTones
  Rgba bad = 0, nobody = 0;    // for wrong tiles, and for tiles without a writer
  Rgba raised = 0, frame = 0;  // for tiles not read yet, and for highlights
  friend bool operator==(const TilePalette&, const TilePalette&) = default;
};
// The colour of a rank: the hue varies along its row of the mesh, each row is lighter than the one
// above.
Rgba writer_colour(std::uint32_t rank, MeshGrid grid, const TilePalette& palette);

// Colours tiles by writer or by coordinate on one mesh axis; one rank can be highlighted, the
// others are then pale.
struct Colouring {
  std::uint32_t stride = 0, size = 0;  // axis: (rank / stride) % size; 0: by writer
  std::optional<std::uint32_t> only;
  TilePalette palette = {};
  friend bool operator==(const Colouring&, const Colouring&) = default;
};
inline constexpr float kAside = 0.14f;  // colour strength of tiles that are not highlighted
Rgba tile_colour(std::uint32_t rank, MeshGrid grid, const Colouring& colouring);

}  // namespace shw
