// How different two colours look, to people with normal colour vision and to people who lack one
// kind of cone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/report/writer_colour.h"

namespace shw::test {

// Colour as seen without one of the three kinds of cones: Machado, Oliveira and Fernandes 2009,
// severity 1, on linear light.
using Matrix3 = std::array<std::array<double, 3>, 3>;
struct Eye {
  const char* name;
  Matrix3 sees;
};
inline constexpr Eye kWithoutRed{"without red",
                                 {{{0.152286, 1.052583, -0.204868},
                                   {0.114503, 0.786281, 0.099216},
                                   {-0.003882, -0.048116, 1.051998}}}};
inline constexpr Eye kWithoutGreen{"without green",
                                   {{{0.367322, 0.860646, -0.227968},
                                     {0.280085, 0.672501, 0.047413},
                                     {-0.011820, 0.042940, 0.968881}}}};
inline constexpr Eye kWithoutBlue{"without blue",
                                  {{{1.255528, -0.076749, -0.178779},
                                    {-0.078411, 0.930809, 0.147602},
                                    {0.004733, 0.691367, 0.303900}}}};
inline constexpr Eye kWithAll{"with all", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}};

inline constexpr const Eye* kEyes[] = {&kWithAll, &kWithoutRed, &kWithoutGreen, &kWithoutBlue};

using Triple = std::array<double, 3>;

inline Triple linear_of(Srgb colour) {
  Triple light{};
  const std::uint8_t bytes[] = {colour.red, colour.green, colour.blue};
  for (unsigned c = 0; c < 3; ++c) {
    double v = bytes[c] / 255.0;
    light[c] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  return light;
}

inline Triple times(const Matrix3& matrix, const Triple& v) {
  Triple out{};
  for (std::size_t r = 0; r < 3; ++r)
    out[r] = matrix[r][0] * v[0] + matrix[r][1] * v[1] + matrix[r][2] * v[2];
  return out;
}

inline Triple oklab_of(Triple light) {
  constexpr Matrix3 kCones{{{0.4122214708, 0.5363325363, 0.0514459929},
                            {0.2119034982, 0.6806995451, 0.1073969566},
                            {0.0883024619, 0.2817188376, 0.6299787005}}};
  constexpr Matrix3 kLab{{{0.2104542553, 0.7936177850, -0.0040720468},
                          {1.9779984951, -2.4285922050, 0.4505937099},
                          {0.0259040371, 0.7827717662, -0.8086757660}}};
  for (double& v : light) v = std::clamp(v, 0.0, 1.0);
  Triple cones = times(kCones, light);
  for (double& v : cones) v = std::cbrt(v);
  return times(kLab, cones);
}

// Distance in OKLab; text starts to be readable on its background at 0.02.
inline double apart(Srgb a, Srgb b, const Eye& eye) {
  Triple x = oklab_of(times(eye.sees, linear_of(a))), y = oklab_of(times(eye.sees, linear_of(b)));
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

}  // namespace shw::test
