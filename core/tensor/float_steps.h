// Branch-free casts of one element, so that compilers can vectorise them and kernels give equal
// bits. The results equal from_narrow() and to_narrow() of convert.h for every code
// (tests/core/tensor/cast_test.cpp). NaN results are written explicitly, because processors produce
// different ones.
#pragma once

#include <cstdint>

#include "core/tensor/convert.h"

namespace shw {

inline constexpr std::uint32_t kFloatSign = 0x80000000u, kFloatInfinity = 0x7F800000u;
inline constexpr std::uint32_t kFloatQuietBit = 0x00400000u, kFloatNan = 0x7FC00000u;

SHW_HOST_DEVICE constexpr std::uint32_t bits_of_float(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
SHW_HOST_DEVICE constexpr float float_of_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
SHW_HOST_DEVICE constexpr bool is_float_nan(std::uint32_t bits) {
  return (bits & ~kFloatSign) > kFloatInfinity;
}

// Decodes a code to float without operations on float's own subnormals, which are slow on CPUs.
template <NarrowFloat form>
SHW_HOST_DEVICE constexpr float widened(std::uint32_t code) {
  constexpr int width = 1 + form.exponent_bits + form.mantissa_bits;
  constexpr std::uint32_t all_ones = (1u << (width - 1)) - 1;
  constexpr std::uint32_t infinity = all_ones ^ ((1u << form.mantissa_bits) - 1);
  const std::uint32_t sign = (code >> (width - 1) & 1) << 31, magnitude = code & all_ones;
  if constexpr (form.exponent_bits == 8) {
    const std::uint32_t bits = code << (32 - width);
    return float_of_bits(is_float_nan(bits) ? sign | kFloatNan : bits);
  } else {
    constexpr int shift = 23 - form.mantissa_bits;
    std::uint32_t bits = (magnitude << shift) + (static_cast<std::uint32_t>(127 - form.bias) << 23);
    // A subnormal is a normal number less the smallest normal one: exact.
    constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - form.bias) << 23;
    const float subnormal = float_of_bits(bits + (1u << 23)) - float_of_bits(smallest_normal);
    bits = magnitude < 1u << form.mantissa_bits ? bits_of_float(subnormal) : bits;
    if constexpr (form.specials == NarrowSpecials::kIeee)
      bits = magnitude >= infinity ? (magnitude > infinity ? kFloatNan : kFloatInfinity) : bits;
    if constexpr (form.specials == NarrowSpecials::kFn)
      bits = magnitude == all_ones ? kFloatNan : bits;
    bits |= sign;
    if constexpr (form.specials == NarrowSpecials::kFnuz)
      bits = code == all_ones + 1 ? kFloatNan : bits;
    return float_of_bits(bits);
  }
}

// The magnitude of the nearest code, ties to even, before the check for overflow.
template <NarrowFloat form>
SHW_HOST_DEVICE constexpr std::uint32_t rounded_magnitude(std::uint32_t magnitude) {
  constexpr int shift = 23 - form.mantissa_bits;
  constexpr std::uint32_t half = (1u << (shift - 1)) - 1;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - form.bias)
                                   << form.mantissa_bits;
  std::uint32_t normal = ((magnitude + half + ((magnitude >> shift) & 1)) >> shift) - rebias;
  if constexpr (form.exponent_bits == 8) return normal;  // such types share float's exponent range
  // Rounds results below the smallest normal number: adding `magic` rounds to a multiple of the
  // smallest subnormal.
  constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - form.bias) << 23;
  constexpr std::uint32_t magic = static_cast<std::uint32_t>(151 - form.bias - form.mantissa_bits)
                                  << 23;
  std::uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + float_of_bits(magic)) - magic;
  return magnitude < smallest_normal ? subnormal : normal;
}

// Encodes a float to the nearest code, ties to even.
template <NarrowFloat form>
SHW_HOST_DEVICE constexpr std::uint32_t narrowed(float value) {
  constexpr int width = 1 + form.exponent_bits + form.mantissa_bits;
  constexpr std::uint32_t all_ones = (1u << (width - 1)) - 1;
  constexpr std::uint32_t infinity = all_ones ^ ((1u << form.mantissa_bits) - 1);
  constexpr std::uint32_t largest = largest_code<form>();
  constexpr std::uint32_t quiet_nan = infinity | (1u << (form.mantissa_bits - 1));
  const std::uint32_t bits = bits_of_float(value), magnitude = bits & ~kFloatSign;
  const std::uint32_t sign = (bits >> 31) << (width - 1);
  const std::uint32_t code = rounded_magnitude<form>(magnitude);
  const bool too_large = code > largest || magnitude >= kFloatInfinity;
  if constexpr (form.specials == NarrowSpecials::kIeee) {
    const std::uint32_t special = magnitude > kFloatInfinity ? quiet_nan : infinity;
    return sign | (too_large ? special : code);
  } else if constexpr (form.specials == NarrowSpecials::kFn) {
    const std::uint32_t special = magnitude > kFloatInfinity ? all_ones : largest;
    return sign | (too_large ? special : code);
  } else {
    const std::uint32_t signed_code = code == 0 ? 0 : sign | code;
    return too_large ? all_ones + 1 : signed_code;
  }
}

// The conversion of x86 and Arm hardware: a NaN keeps its sign and the upper bits of its payload,
// and becomes quiet.
SHW_HOST_DEVICE constexpr float float_of_double(double value) {
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const bool is_nan = (bits & ~(std::uint64_t{1} << 63)) > std::uint64_t{0x7FF} << 52;
  const auto nan = static_cast<std::uint32_t>(bits >> 63 << 31) | kFloatNan |
                   (static_cast<std::uint32_t>(bits >> 29) & (kFloatQuietBit - 1));
  return is_nan ? float_of_bits(nan) : static_cast<float>(value);
}
SHW_HOST_DEVICE constexpr double double_of_float(float value) {
  const std::uint32_t bits = bits_of_float(value);
  const std::uint64_t nan = (std::uint64_t{bits >> 31} << 63) | (std::uint64_t{0x7FF8} << 48) |
                            (std::uint64_t{bits & (kFloatQuietBit - 1)} << 29);
  return is_float_nan(bits) ? __builtin_bit_cast(double, nan) : static_cast<double>(value);
}

// Product rounded once to float32, as in torch. For two NaNs the value's NaN is returned; infinity
// times zero gives the NaN of x86.
SHW_HOST_DEVICE constexpr float scaled(float value, float factor) {
  const float product = value * factor;
  const std::uint32_t of_value = bits_of_float(value), of_factor = bits_of_float(factor);
  std::uint32_t nan = is_float_nan(of_factor) ? of_factor | kFloatQuietBit : kFloatSign | kFloatNan;
  nan = is_float_nan(of_value) ? of_value | kFloatQuietBit : nan;
  return is_float_nan(bits_of_float(product)) ? float_of_bits(nan) : product;
}

}  // namespace shw
