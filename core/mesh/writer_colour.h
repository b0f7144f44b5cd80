// The colour of a writer, the same in every picture that the program draws, on the desk, on a page
// and at a terminal. Along a row of ranks the hue runs from blue over red to olive while the
// lightness falls, so that neighbours differ by lightness where an eye sees no hue.
#pragma once

#include <cstdint>

namespace shw {

struct Srgb {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Srgb&, const Srgb&) = default;
};

// OKLCH: lightness 0 to 1, chroma about 0 to 0.3, hue in degrees. What sRGB cannot show loses
// chroma, never lightness.
Srgb srgb_of_oklch(float lightness, float chroma, float hue);
// WCAG: 0 to 1.
float luminance_of(Srgb colour);

// How ranks lie in the picture of the mesh: rank = row * columns + column.
struct MeshGrid {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  friend bool operator==(const MeshGrid&, const MeshGrid&) = default;
};

struct WriterTones {
  float first_row = 0.59f, last_row = 0.70f;  // lightness of the rows of ranks
  float fall = 0.13f;                         // of the lightness, from the first column to the last
  float chroma = 0.085f;
};
// The hue runs along the row of a rank, each row is lighter than the one above.
Srgb writer_srgb(std::uint32_t rank, MeshGrid grid, const WriterTones& tones);

}  // namespace shw
