#include "views/color.h"

#include <algorithm>
#include <cmath>

namespace shw {
namespace {

float channel(Rgba colour, unsigned shift) {
  return static_cast<float>((colour >> shift) & 0xFFu) / 255.0f;
}

unsigned to_byte(float value) {
  return static_cast<unsigned>(std::lround(std::clamp(value, 0.0f, 1.0f) * 255.0f));
}

float to_linear(float value) {
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

float from_linear(float value) {
  return value <= 0.0031308f ? value * 12.92f : 1.055f * std::pow(value, 1 / 2.4f) - 0.055f;
}

struct Linear {
  float red, green, blue;
  bool in_gamut() const {
    auto fits = [](float v) { return v >= -0.0005f && v <= 1.0005f; };
    return fits(red) && fits(green) && fits(blue);
  }
};

// Ottosson's matrices.
Linear oklch_to_linear(float lightness, float chroma, float hue) {
  float radians = hue * 3.14159265f / 180.0f;
  float a = chroma * std::cos(radians), b = chroma * std::sin(radians);
  float l = lightness + 0.3963377774f * a + 0.2158037573f * b;
  float m = lightness - 0.1055613458f * a - 0.0638541728f * b;
  float s = lightness - 0.0894841775f * a - 1.2914855480f * b;
  l = l * l * l;
  m = m * m * m;
  s = s * s * s;
  return {4.0767416621f * l - 3.3077115913f * m + 0.2309699292f * s,
          -1.2684380046f * l + 2.6097574011f * m - 0.3413193965f * s,
          -0.0041960863f * l - 0.7034186147f * m + 1.7076147010f * s};
}

}  // namespace

Rgba with_alpha(Rgba colour, float alpha) {
  return (colour & 0x00FFFFFFu) | (to_byte(alpha) << 24);
}

Rgba mix(Rgba from, Rgba to, float amount) {
  auto blend = [&](unsigned shift) {
    return to_byte(channel(from, shift) + (channel(to, shift) - channel(from, shift)) * amount);
  };
  return blend(0) | (blend(8) << 8) | (blend(16) << 16) | (blend(24) << 24);
}

Rgba from_oklch(float lightness, float chroma, float hue) {
  Linear colour = oklch_to_linear(lightness, chroma, hue);
  for (int step = 0; step < 24 && !colour.in_gamut(); ++step) {
    chroma *= 0.9f;
    colour = oklch_to_linear(lightness, chroma, hue);
  }
  return rgb(to_byte(from_linear(std::max(colour.red, 0.0f))),
             to_byte(from_linear(std::max(colour.green, 0.0f))),
             to_byte(from_linear(std::max(colour.blue, 0.0f))));
}

float luminance(Rgba colour) {
  return 0.2126f * to_linear(channel(colour, 0)) + 0.7152f * to_linear(channel(colour, 8)) +
         0.0722f * to_linear(channel(colour, 16));
}

float contrast(Rgba a, Rgba b) {
  float brighter = luminance(a), darker = luminance(b);
  if (brighter < darker) std::swap(brighter, darker);
  return (brighter + 0.05f) / (darker + 0.05f);
}

Rgba readable_on(Rgba background, Rgba dark, Rgba light) {
  return contrast(background, dark) > contrast(background, light) ? dark : light;
}

Rgba writer_colour(std::uint32_t rank, MeshGrid grid, const TilePalette& palette) {
  std::uint32_t columns = std::max(grid.columns, 1u), rows = std::max(grid.rows, 1u);
  std::uint32_t column = rank % columns, row = (rank / columns) % rows;
  if (columns == 1) {  // one column only: the rows take the hues
    std::swap(column, row);
    std::swap(columns, rows);
  }
  auto part = [](std::uint32_t at, std::uint32_t of) {
    return of > 1 ? static_cast<float>(at) / static_cast<float>(of - 1) : 0.0f;
  };
  // From blue over purple and red to olive: the arc without the green and the gold that the tokens
  // use. Chroma stays low, so that red and gold of a finding stand out. Without the fall two of
  // eight ranks were 0.004 apart (OKLab) to an eye without green; with it the least is 0.02.
  float along = part(column, columns);
  float hue = 240.0f + 200.0f * along;
  float down = rows > 1 ? part(row, rows) : 0.5f;
  float lightness = palette.first_row + (palette.last_row - palette.first_row) * down +
                    palette.fall * (0.5f - along);
  return from_oklch(lightness, palette.chroma, hue);
}

Rgba tile_colour(std::uint32_t rank, MeshGrid grid, const Colouring& colouring) {
  Rgba colour = colouring.size > 0 && colouring.stride > 0
                    ? writer_colour(rank / colouring.stride % colouring.size, {1, colouring.size},
                                    colouring.palette)
                    : writer_colour(rank, grid, colouring.palette);
  return colouring.only && *colouring.only != rank ? with_alpha(colour, kAside) : colour;
}

}  // namespace shw
