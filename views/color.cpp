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

Rgba rgba_of(Srgb colour) {
  return rgb(colour.red, colour.green, colour.blue);
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
  return rgba_of(srgb_of_oklch(lightness, chroma, hue));
}

float luminance(Rgba colour) {
  return luminance_of({static_cast<std::uint8_t>(colour), static_cast<std::uint8_t>(colour >> 8),
                       static_cast<std::uint8_t>(colour >> 16)});
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
  return rgba_of(
      rank_colour(rank, grid, {palette.first_row, palette.last_row, palette.fall, palette.chroma}));
}

Rgba tile_colour(std::uint32_t rank, MeshGrid grid, const Colouring& colouring) {
  Rgba colour = colouring.size > 0 && colouring.stride > 0
                    ? writer_colour(rank / colouring.stride % colouring.size, {1, colouring.size},
                                    colouring.palette)
                    : writer_colour(rank, grid, colouring.palette);
  return colouring.only && *colouring.only != rank ? with_alpha(colour, kAside) : colour;
}

}  // namespace shw
