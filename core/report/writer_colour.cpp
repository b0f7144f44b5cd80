#include "core/report/writer_colour.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shw {
namespace {

std::uint8_t byte_of(float value) {
  return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 1.0f) * 255.0f));
}

float linear_of(std::uint8_t byte) {
  const float value = static_cast<float>(byte) / 255.0f;
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

float srgb_gamma(float linear) {
  linear = std::max(linear, 0.0f);
  return linear <= 0.0031308f ? linear * 12.92f : 1.055f * std::pow(linear, 1 / 2.4f) - 0.055f;
}

struct Linear {
  float red, green, blue;
  bool in_gamut() const {
    auto fits = [](float v) { return v >= -0.0005f && v <= 1.0005f; };
    return fits(red) && fits(green) && fits(blue);
  }
};

// Converts by Ottosson's OKLab matrices.
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

Srgb srgb_of_oklch(float lightness, float chroma, float hue) {
  Linear colour = oklch_to_linear(lightness, chroma, hue);
  for (int step = 0; step < 24 && !colour.in_gamut(); ++step) {
    chroma *= 0.9f;
    colour = oklch_to_linear(lightness, chroma, hue);
  }
  return {byte_of(srgb_gamma(colour.red)), byte_of(srgb_gamma(colour.green)),
          byte_of(srgb_gamma(colour.blue))};
}

float luminance_of(Srgb colour) {
  return 0.2126f * linear_of(colour.red) + 0.7152f * linear_of(colour.green) +
         0.0722f * linear_of(colour.blue);
}

Srgb rank_colour(std::uint32_t rank, MeshGrid grid, const RankTones& tones) {
  std::uint32_t columns = std::max(grid.columns, 1u), rows = std::max(grid.rows, 1u);
  std::uint32_t column = rank % columns, row = (rank / columns) % rows;
  if (columns == 1) {  // with one column the rows get the hues
    std::swap(column, row);
    std::swap(columns, rows);
  }
  auto part = [](std::uint32_t at, std::uint32_t of) {
    return of > 1 ? static_cast<float>(at) / static_cast<float>(of - 1) : 0.0f;
  };
  // Hues from blue over purple and red to olive, without the green and gold of the theme. Low
  // chroma, so that red and gold of findings stand out. The fall in lightness raises the least
  // distance of eight ranks for a red-green-blind eye from 0.004 to 0.02 (OKLab).
  float along = part(column, columns);
  float hue = 240.0f + 200.0f * along;
  float down = rows > 1 ? part(row, rows) : 0.5f;
  float lightness =
      tones.first_row + (tones.last_row - tones.first_row) * down + tones.fall * (0.5f - along);
  return srgb_of_oklch(lightness, tones.chroma, hue);
}

}  // namespace shw
