// Scalar conversions between float and the narrow floating point types, as in torch 2.15 (c10/util:
// BFloat16.h, Half.h, Float8_*.h, float4_e2m1fn_x2): round to nearest, ties to even. Out-of-range
// values become infinity if the type has one, the largest number in e4m3fn (NaN before torch 2.15;
// also for infinities) and in e2m1fn, and NaN in the others. Only integer arithmetic and no library
// calls, so that CPU and CUDA give equal bits.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SHW_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SHW_HOST_DEVICE
#endif

namespace shw {

enum class NarrowSpecials : std::uint8_t {
  kIeee,    // the last exponent encodes infinities and NaNs
  kFn,      // all ones is NaN, no infinity
  kFnuz,    // only 0b1000... is NaN; no infinity, no negative zero
  kFinite,  // no infinity and no NaN
  kE8m0,    // exponent only: 255 is NaN, no sign, no zero
};

struct NarrowFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  NarrowSpecials specials;
};

inline constexpr NarrowFloat kFloat16Form{5, 10, 15, NarrowSpecials::kIeee};
inline constexpr NarrowFloat kBfloat16Form{8, 7, 127, NarrowSpecials::kIeee};
inline constexpr NarrowFloat kE5m2Form{5, 2, 15, NarrowSpecials::kIeee};
inline constexpr NarrowFloat kE4m3fnForm{4, 3, 7, NarrowSpecials::kFn};
inline constexpr NarrowFloat kE5m2fnuzForm{5, 2, 16, NarrowSpecials::kFnuz};
inline constexpr NarrowFloat kE4m3fnuzForm{4, 3, 8, NarrowSpecials::kFnuz};
inline constexpr NarrowFloat kE2m1fnForm{2, 1, 1, NarrowSpecials::kFinite};
inline constexpr NarrowFloat kE8m0Form{8, 0, 127, NarrowSpecials::kE8m0};

template <class Real>
struct RealBits;
template <>
struct RealBits<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23, kBias = 127, kMaxExponent = 255;
};
template <>
struct RealBits<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023, kMaxExponent = 2047;
};

// Decodes a code of the narrow type; exact in float and in double.
template <NarrowFloat form, class Real = float>
SHW_HOST_DEVICE constexpr Real from_narrow(std::uint32_t code) {
  using Traits = RealBits<Real>;
  using Bits = typename Traits::Bits;
  constexpr int width = 1 + form.exponent_bits + form.mantissa_bits;
  constexpr Bits kNan =
      (Bits{Traits::kMaxExponent} << Traits::kMantissa) | (Bits{1} << (Traits::kMantissa - 1));
  constexpr std::uint32_t last_exponent = (1u << form.exponent_bits) - 1;
  constexpr std::uint32_t mantissa_mask = (1u << form.mantissa_bits) - 1;
  Bits sign = 0;
  if constexpr (form.specials != NarrowSpecials::kE8m0)
    sign = Bits{(code >> (width - 1)) & 1} << (sizeof(Real) * 8 - 1);
  std::uint32_t exponent = (code >> form.mantissa_bits) & last_exponent;
  std::uint32_t mantissa = code & mantissa_mask;

  if constexpr (form.specials == NarrowSpecials::kIeee) {
    if (exponent == last_exponent) {
      Bits infinity = Bits{Traits::kMaxExponent} << Traits::kMantissa;
      return __builtin_bit_cast(Real, sign | (mantissa == 0 ? infinity : kNan));
    }
  } else if constexpr (form.specials == NarrowSpecials::kFn) {
    if (exponent == last_exponent && mantissa == mantissa_mask)
      return __builtin_bit_cast(Real, sign | kNan);
  } else if constexpr (form.specials == NarrowSpecials::kFnuz) {
    if (code == 1u << (width - 1)) return __builtin_bit_cast(Real, kNan);
  } else if constexpr (form.specials == NarrowSpecials::kE8m0) {
    if (exponent == last_exponent) return __builtin_bit_cast(Real, kNan);
  }

  int unbiased = static_cast<int>(exponent) - form.bias;
  Bits fraction = Bits{mantissa} << (Traits::kMantissa - form.mantissa_bits);
  if (exponent == 0 && form.specials != NarrowSpecials::kE8m0) {
    if (mantissa == 0) return __builtin_bit_cast(Real, sign);
    unbiased += 1;
    while ((fraction & (Bits{1} << Traits::kMantissa)) == 0) {
      fraction <<= 1;
      --unbiased;
    }
    fraction &= (Bits{1} << Traits::kMantissa) - 1;
  }
  int target = unbiased + Traits::kBias;
  if (target <= 0) {
    // Below float's normal numbers: subnormals of bfloat16 and the smallest e8m0 values.
    fraction |= Bits{1} << Traits::kMantissa;
    return __builtin_bit_cast(Real, sign | (fraction >> (1 - target)));
  }
  return __builtin_bit_cast(Real,
                            sign | (static_cast<Bits>(target) << Traits::kMantissa) | fraction);
}

// The code of the largest finite number.
template <NarrowFloat form>
SHW_HOST_DEVICE constexpr std::uint32_t largest_code() {
  constexpr std::uint32_t all_ones = (1u << (form.exponent_bits + form.mantissa_bits)) - 1;
  return form.specials == NarrowSpecials::kIeee ? all_ones - (1u << form.mantissa_bits)
         : form.specials == NarrowSpecials::kFn ? all_ones - 1
                                                : all_ones;
}

// True if the value is at least half a step above the largest number of the type, or an infinity
// that the type does not have. The cast then changes the value.
template <NarrowFloat form, class Real = float>
SHW_HOST_DEVICE constexpr bool is_out_of_range(Real value) {
  using Bits = typename RealBits<Real>::Bits;
  constexpr int mantissa = RealBits<Real>::kMantissa;
  constexpr Bits infinity = Bits{RealBits<Real>::kMaxExponent} << mantissa;
  constexpr std::uint32_t largest = largest_code<form>();
  // A tie is rounded to the even code.
  constexpr Bits first = __builtin_bit_cast(Bits, from_narrow<form, Real>(largest)) +
                         (Bits{1} << (mantissa - 1 - form.mantissa_bits)) + (1 - (largest & 1));
  constexpr Bits last = infinity - (form.specials == NarrowSpecials::kIeee ? 1 : 0);
  const Bits magnitude = __builtin_bit_cast(Bits, value) & ~(Bits{1} << (sizeof(Real) * 8 - 1));
  return magnitude - first <= last - first;
}

template <NarrowFloat form>
SHW_HOST_DEVICE constexpr std::uint32_t narrow_overflow(std::uint32_t sign, bool is_nan) {
  constexpr std::uint32_t magnitude = (1u << (form.exponent_bits + form.mantissa_bits)) - 1;
  switch (form.specials) {
    case NarrowSpecials::kIeee: {
      constexpr std::uint32_t infinity = magnitude ^ ((1u << form.mantissa_bits) - 1);
      return is_nan ? sign | infinity |
                          (1u << (form.mantissa_bits - 1 >= 0 ? form.mantissa_bits - 1 : 0))
                    : sign | infinity;
    }
    case NarrowSpecials::kFnuz:
      return magnitude + 1;
    case NarrowSpecials::kFn:
      return sign | (is_nan ? magnitude : magnitude - 1);
    case NarrowSpecials::kFinite:
    case NarrowSpecials::kE8m0:
      break;
  }
  return sign | magnitude;
}

// Encodes to the nearest code, ties to even.
template <NarrowFloat form, class Real = float>
SHW_HOST_DEVICE constexpr std::uint32_t to_narrow(Real value) {
  using Traits = RealBits<Real>;
  using Bits = typename Traits::Bits;
  constexpr int width = 1 + form.exponent_bits + form.mantissa_bits;
  Bits bits = __builtin_bit_cast(Bits, value);
  int exponent = static_cast<int>((bits >> Traits::kMantissa) & Traits::kMaxExponent);
  Bits fraction = bits & ((Bits{1} << Traits::kMantissa) - 1);
  bool is_nan = exponent == Traits::kMaxExponent && fraction != 0;

  if constexpr (form.specials == NarrowSpecials::kE8m0) {
    // e8m0 has no sign; a tie rounds up, because the bit above it is the implied one.
    if (exponent == Traits::kMaxExponent) return 255;
    int code = exponent - Traits::kBias + form.bias;
    bool up = fraction >= Bits{1} << (Traits::kMantissa - 1);
    // Subnormals of the source have no implied bit: a tie rounds down.
    if (exponent == 0) up = fraction > Bits{1} << (Traits::kMantissa - 1);
    code += up ? 1 : 0;
    return code < 0 ? 0u : code > 255 ? 255u : static_cast<std::uint32_t>(code);
  } else {
    std::uint32_t sign = static_cast<std::uint32_t>(bits >> (sizeof(Real) * 8 - 1)) << (width - 1);
    if (exponent == Traits::kMaxExponent) return narrow_overflow<form>(sign, is_nan);
    // value = significand * 2^(power - kMantissa)
    Bits significand = exponent == 0 ? fraction : fraction | (Bits{1} << Traits::kMantissa);
    int power = (exponent == 0 ? 1 : exponent) - Traits::kBias;
    if (significand == 0) return form.specials == NarrowSpecials::kFnuz ? 0u : sign;
    // Subnormals of float may be subnormals of bfloat16: normalise them first.
    while ((significand & (Bits{1} << Traits::kMantissa)) == 0) {
      significand <<= 1;
      --power;
    }
    int lowest = 1 - form.bias;
    int drop = Traits::kMantissa - form.mantissa_bits + (power < lowest ? lowest - power : 0);
    if (drop > Traits::kMantissa + 1) return form.specials == NarrowSpecials::kFnuz ? 0u : sign;
    Bits kept = significand >> drop;
    Bits rest = significand & ((Bits{1} << drop) - 1);
    Bits half = Bits{1} << (drop - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
    // In a normal number `kept` includes the implied bit, which adds one exponent step; a rounding
    // carry into the exponent is then correct as well.
    std::int64_t magnitude = static_cast<std::int64_t>(kept);
    if (power >= lowest)
      magnitude += static_cast<std::int64_t>(power + form.bias - 1) << form.mantissa_bits;
    if (magnitude > std::int64_t{largest_code<form>()}) {
      if constexpr (form.specials == NarrowSpecials::kFinite) return sign | largest_code<form>();
      return narrow_overflow<form>(sign, false);
    }
    if (magnitude == 0 && form.specials == NarrowSpecials::kFnuz) return 0;
    return sign | static_cast<std::uint32_t>(magnitude);
  }
}

}  // namespace shw
