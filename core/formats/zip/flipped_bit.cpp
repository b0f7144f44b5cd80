#include "core/formats/zip/flipped_bit.h"

#include <algorithm>
#include <vector>

namespace shw {
namespace {

// Polynomials modulo that of CRC-32, reflected: the highest bit is x^0.
using Polynomial = std::uint32_t;
constexpr Polynomial kModulus = 0xEDB88320u, kOne = 0x80000000u, kX = 0x40000000u;
constexpr std::uint64_t kPeriod = 0xFFFFFFFFu;

Polynomial times_x(Polynomial a) {
  return (a >> 1) ^ ((a & 1) != 0 ? kModulus : 0);
}

Polynomial product(Polynomial a, Polynomial b) {
  Polynomial sum = 0;
  for (Polynomial term = kOne; term != 0; term >>= 1) {
    if ((a & term) != 0) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

Polynomial power_of_x(std::uint64_t exponent) {
  Polynomial out = kOne, square = kX;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) out = product(out, square);
    square = product(square, square);
  }
  return out;
}

constexpr std::uint64_t kStride = 0x10000;

struct Power {
  Polynomial value = 0;
  std::uint32_t exponent = 0;
};

// The powers x^0 to x^(kStride - 1), sorted by value.
const std::vector<Power>& first_powers() {
  static const std::vector<Power> kPowers = [] {
    std::vector<Power> powers(kStride);
    Polynomial value = kOne;
    for (std::uint32_t n = 0; n < kStride; ++n, value = times_x(value)) powers[n] = {value, n};
    std::sort(powers.begin(), powers.end(),
              [](const Power& a, const Power& b) { return a.value < b.value; });
    return powers;
  }();
  return kPowers;
}

// The n <= `most` with x^n == value.
std::optional<std::uint64_t> logarithm(Polynomial value, std::uint64_t most) {
  const std::vector<Power>& powers = first_powers();
  const Polynomial back = power_of_x(kPeriod - kStride);
  for (std::uint64_t done = 0; done <= most; done += kStride, value = product(value, back)) {
    auto found = std::lower_bound(powers.begin(), powers.end(), value,
                                  [](const Power& a, Polynomial b) { return a.value < b; });
    if (found == powers.end() || found->value != value) continue;
    const std::uint64_t n = done + found->exponent;
    return n <= most ? std::optional(n) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FlippedBit> flipped_bit(std::uint32_t expected, std::uint32_t actual,
                                      std::uint64_t length) {
  if (expected == actual || length == 0 || length > kMaxFlipped) return std::nullopt;
  // A CRC is the remainder of the bytes times x^32; bytes are processed lowest bit first.
  constexpr std::uint64_t kShift = 32;
  const auto n = logarithm(expected ^ actual, 8 * length - 1 + kShift);
  if (!n || *n < kShift) return std::nullopt;
  const std::uint64_t behind = *n - kShift;  // bits after the flipped one
  return FlippedBit{length - 1 - behind / 8, static_cast<unsigned>(7 - behind % 8)};
}

}  // namespace shw
