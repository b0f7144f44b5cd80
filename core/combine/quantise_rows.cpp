#include "core/combine/quantise_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr float kLargestFp8 = 448, kLargestFp4 = 6;
constexpr std::size_t kGroup = 32;
constexpr std::uint32_t kExponent = 0x7F800000u, kMantissa = 0x007FFFFFu;

// The factor by which numbers are multiplied, and its inverse, which is stored.
struct BlockScale {
  float factor = 1, inverse = 1;
};
BlockScale scale_of(float largest, bool power_of_two) {
  BlockScale scale;
  // torch divides a number by a tensor by multiplying with the reciprocal; so does this code.
  if (largest > 0) scale.factor = 1.0f / largest * kLargestFp8;
  scale.inverse = 1.0f / scale.factor;
  if (!power_of_two) return scale;
  const float least = std::numeric_limits<float>::min();
  scale.inverse = std::exp2(std::ceil(std::log2(std::max(scale.inverse, least))));
  scale.factor = 1.0f / scale.inverse;
  return scale;
}

// Rounds to the nearest of 0, 0.5, 1, 1.5, 2, 3, 4 and 6, ties up; the sign is bit 3.
unsigned fp4_of(float number) {
  constexpr std::array<float, 7> kFrom{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float size = std::abs(number);
  const auto above = std::upper_bound(kFrom.begin(), kFrom.end(), size);
  const unsigned code = std::isnan(number) ? 7u : static_cast<unsigned>(above - kFrom.begin());
  return code | (std::signbit(number) ? 8u : 0u);
}

}  // namespace

Result<Fp8Rows> quantise_fp8(std::span<const float> numbers, std::size_t columns,
                             std::size_t block_rows, std::size_t block_columns,
                             bool powers_of_two) {
  const std::size_t rows = columns == 0 ? 0 : numbers.size() / columns;
  const std::size_t across = columns / block_columns;
  Fp8Rows made;
  std::vector<float> scaled(numbers.size());
  for (std::size_t row = 0; row < rows; row += block_rows) {
    for (std::size_t block = 0; block < across; ++block) {
      const std::size_t begin = row * columns + block * block_columns;
      float largest = 0;
      for (std::size_t r = 0; r < block_rows; ++r) {
        const float* from = numbers.data() + begin + r * columns;
        for (std::size_t c = 0; c < block_columns; ++c) {
          const float size = std::abs(from[c]);
          // Like torch's amax: a NaN is the maximum.
          if (size > largest || std::isnan(size)) largest = size;
        }
      }
      const BlockScale scale = scale_of(largest, powers_of_two);
      made.scales.push_back(scale.inverse);
      for (std::size_t r = 0; r < block_rows; ++r) {
        for (std::size_t c = 0; c < block_columns; ++c) {
          const std::size_t at = begin + r * columns + c;
          scaled[at] = std::clamp(numbers[at] * scale.factor, -kLargestFp8, kLargestFp8);
        }
      }
    }
  }
  SHW_TRY(made.elements,
          cast_elements(Dtype::kFloat32, std::as_bytes(std::span(scaled)), Dtype::kFloat8E4m3fn));
  return made;
}

Fp4Rows quantise_fp4(std::span<const float> numbers, std::size_t inputs, std::size_t outputs) {
  Fp4Rows made{Bytes(inputs / 2 * outputs), Bytes(inputs / kGroup * outputs)};
  for (std::size_t output = 0; output < outputs; ++output) {
    for (std::size_t group = 0; group < inputs / kGroup; ++group) {
      const float* from = numbers.data() + group * kGroup * outputs + output;
      float largest = 0;
      for (std::size_t i = 0; i < kGroup; ++i)
        largest = std::max(largest, std::abs(from[i * outputs]));
      // The least power of two for which the scaled maximum is at most 6.
      const auto bits = std::bit_cast<std::uint32_t>(largest / kLargestFp4);
      const std::uint32_t rounded = (bits + kMantissa) & kExponent;
      const float factor = rounded == 0 ? 0.0f : 1.0f / std::bit_cast<float>(rounded);
      const std::size_t at = output * (inputs / kGroup) + group;
      made.scales[at] = static_cast<std::byte>(rounded >> 23);
      for (std::size_t i = 0; i < kGroup; i += 2) {
        const unsigned low = fp4_of(from[i * outputs] * factor);
        const unsigned high = fp4_of(from[(i + 1) * outputs] * factor);
        made.blocks[at * (kGroup / 2) + i / 2] = static_cast<std::byte>(low | high << 4);
      }
    }
  }
  return made;
}

}  // namespace shw
