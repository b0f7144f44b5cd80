// Splits any float of up to 64 bits into sign, integer magnitude and power of two. For single codes
// and tables; loops over elements have their own code.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor/convert.h"
#include "core/tensor/dtype.h"

namespace shw {

inline constexpr NarrowFloat kFloat32Form{8, 23, 127, NarrowSpecials::kIeee};
inline constexpr NarrowFloat kFloat64Form{11, 52, 1023, NarrowSpecials::kIeee};

// nullopt for dtypes whose element is not a single float.
inline std::optional<NarrowFloat> float_form(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return kFloat64Form;
    case Dtype::kFloat32:
      return kFloat32Form;
    case Dtype::kFloat16:
      return kFloat16Form;
    case Dtype::kBfloat16:
      return kBfloat16Form;
    case Dtype::kFloat8E4m3fn:
      return kE4m3fnForm;
    case Dtype::kFloat8E5m2:
      return kE5m2Form;
    case Dtype::kFloat8E4m3fnuz:
      return kE4m3fnuzForm;
    case Dtype::kFloat8E5m2fnuz:
      return kE5m2fnuzForm;
    case Dtype::kFloat8E8m0fnu:
      return kE8m0Form;
    default:
      return std::nullopt;
  }
}

// 2^unit_exponent is the smallest positive number: all finite values are multiples of it.
constexpr int unit_exponent(const NarrowFloat& form) {
  return (form.specials == NarrowSpecials::kE8m0 ? 0 : 1) - form.bias - form.mantissa_bits;
}

// value = magnitude * 2^(power + unit_exponent)
struct NumberParts {
  bool is_nan = false, is_infinite = false, is_denormal = false, negative = false;
  std::uint64_t magnitude = 0;
  int power = 0;
};

constexpr NumberParts parts_of(const NarrowFloat& form, std::uint64_t bits) {
  const std::uint64_t last = (std::uint64_t{1} << form.exponent_bits) - 1;
  const std::uint64_t ones = (std::uint64_t{1} << form.mantissa_bits) - 1;
  const std::uint64_t exponent = (bits >> form.mantissa_bits) & last, mantissa = bits & ones;
  NumberParts parts;
  if (form.specials == NarrowSpecials::kE8m0) {
    parts.is_nan = exponent == last;
    parts.magnitude = 1;
    parts.power = static_cast<int>(exponent);
    return parts;
  }
  const int width = 1 + form.exponent_bits + form.mantissa_bits;
  parts.negative = (bits >> (width - 1) & 1) != 0;
  if (form.specials == NarrowSpecials::kIeee && exponent == last) {
    parts.is_nan = mantissa != 0;
    parts.is_infinite = mantissa == 0;
  } else if (form.specials == NarrowSpecials::kFn && exponent == last && mantissa == ones) {
    parts.is_nan = true;
  } else if (form.specials == NarrowSpecials::kFnuz && bits == std::uint64_t{1} << (width - 1)) {
    parts.is_nan = true;
  }
  parts.is_denormal = exponent == 0 && mantissa != 0;
  parts.magnitude = exponent == 0 ? mantissa : mantissa | (ones + 1);
  parts.power = exponent == 0 ? 0 : static_cast<int>(exponent) - 1;
  return parts;
}

}  // namespace shw
