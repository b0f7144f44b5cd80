// The colour of a rank, equal in all pictures: desktop, report and terminal. Along a row of ranks
// the hue runs from blue over red to olive while the lightness falls, so that neighbours differ in
// lightness for colour-blind readers.
#pragma once

#include <cstdint>

namespace shw {

struct Srgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Srgb&, const Srgb&) = default;
};

// OKLCH to sRGB: lightness 0 to 1, chroma about 0 to 0.3, hue in degrees. Out-of-gamut colours lose
// chroma, never lightness.
Srgb srgb_of_oklch(float lightness, float chroma, float hue);
// Relative luminance as in WCAG, 0 to 1.
float luminance_of(Srgb colour);

// The mesh as a picture: rank = row * columns + column.
struct MeshGrid {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  friend bool operator==(const MeshGrid&, const MeshGrid&) = default;
};

struct RankTones {
  float first_row = 0.59f, last_row = 0.70f;  // lightness of the first and last row of ranks
  float fall = 0.13f;                         // decrease of lightness from first to last column
  float chroma = 0.085f;
};
// Hue varies along the row of a rank; each row is lighter than the one above.
Srgb rank_colour(std::uint32_t rank, MeshGrid grid, const RankTones& tones);

}  // namespace shw
