// Shortest text of an element that parses back to the same bits.
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "core/base/little_endian.h"
#include "core/tensor/convert.h"
#include "core/tensor/element_text.h"

namespace shw {
namespace {

std::string special_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  // JSON readers parse "-0" as an integer, which has no negative zero.
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  return {};
}

template <class Real>
std::string real_text(Real value) {
  std::string special = special_text(static_cast<double>(value));
  if (!special.empty()) return special;
  std::array<char, 64> text;
  auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

// digits * 10^exponent as a double, written as to_chars writes doubles.
double parse(const std::string& digits, int exponent) {
  std::string text = digits + "e" + std::to_string(exponent);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string increment_decimal(std::string digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return digits;
    }
    digits[i] = '0';
  }
  return "1" + digits;
}

// Finds the shortest text for types narrower than double: the first precision at which the decimal
// just below or above the value converts back to the same code, both from double and by way of
// float (as torch does).
template <NarrowFloat form>
std::string narrow_text(std::uint32_t code) {
  double value = from_narrow<form, double>(code);
  std::string special = special_text(value);
  if (!special.empty()) return special;
  auto reads_back = [&](double read) {
    double with_sign = value < 0 ? -read : read;
    if (form.specials != NarrowSpecials::kE8m0 && is_out_of_range<form, double>(with_sign))
      return false;  // 500 would cast to e4m3fn's 448 but is not its text
    return to_narrow<form, double>(with_sign) == code &&
           to_narrow<form, float>(static_cast<float>(with_sign)) == code;
  };
  std::array<char, 64> buffer;
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                           std::chars_format::scientific, 17);
  std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  std::size_t e = text.find('e');
  int exponent = 0;
  std::string_view power = text.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits = std::string(1, text[0]) + std::string(text.substr(2, e - 2));

  for (int precision = 1; precision <= 17; ++precision) {
    std::string below = digits.substr(0, static_cast<std::size_t>(precision));
    std::string above = increment_decimal(below);
    int scale = exponent - precision + 1;
    double candidates[2] = {parse(below, scale), parse(above, scale)};
    if (candidates[1] - std::abs(value) < std::abs(value) - candidates[0])
      std::swap(candidates[0], candidates[1]);
    for (double candidate : candidates) {
      if (reads_back(candidate)) return real_text(value < 0 ? -candidate : candidate);
    }
  }
  return real_text(value);
}

template <class T>
std::string integer_text(BytesView bytes, std::size_t index) {
  return std::to_string(load_little<T>(bytes, index * sizeof(T)));
}

std::string pair_text(const std::string& first, const std::string& second) {
  return "[" + first + ", " + second + "]";
}

template <NarrowFloat form>
std::string half_text(BytesView bytes, std::size_t index) {
  return narrow_text<form>(load_little<std::uint16_t>(bytes, index * 2));
}

template <NarrowFloat form>
std::string byte_text(BytesView bytes, std::size_t index) {
  return narrow_text<form>(static_cast<std::uint32_t>(bytes[index]));
}

}  // namespace

std::string element_text(Dtype dtype, BytesView bytes, std::size_t index) {
  std::size_t size = size_of(dtype);
  if (size == 0 || index >= bytes.size() / size) return "null";
  switch (dtype) {
    case Dtype::kFloat64:
      return real_text(load_little<double>(bytes, index * 8));
    case Dtype::kFloat32:
      return real_text(load_little<float>(bytes, index * 4));
    case Dtype::kFloat16:
      return half_text<kFloat16Form>(bytes, index);
    case Dtype::kBfloat16:
      return half_text<kBfloat16Form>(bytes, index);
    case Dtype::kFloat8E4m3fn:
      return byte_text<kE4m3fnForm>(bytes, index);
    case Dtype::kFloat8E5m2:
      return byte_text<kE5m2Form>(bytes, index);
    case Dtype::kFloat8E4m3fnuz:
      return byte_text<kE4m3fnuzForm>(bytes, index);
    case Dtype::kFloat8E5m2fnuz:
      return byte_text<kE5m2fnuzForm>(bytes, index);
    case Dtype::kFloat8E8m0fnu:
      return byte_text<kE8m0Form>(bytes, index);
    case Dtype::kFloat4E2m1fnX2: {
      auto packed = static_cast<std::uint32_t>(bytes[index]);
      return pair_text(narrow_text<kE2m1fnForm>(packed & 15),
                       narrow_text<kE2m1fnForm>(packed >> 4));
    }
    case Dtype::kInt8:
    case Dtype::kQint8:
      return integer_text<std::int8_t>(bytes, index);
    case Dtype::kInt16:
      return integer_text<std::int16_t>(bytes, index);
    case Dtype::kInt32:
    case Dtype::kQint32:
      return integer_text<std::int32_t>(bytes, index);
    case Dtype::kInt64:
      return integer_text<std::int64_t>(bytes, index);
    case Dtype::kUint16:
    case Dtype::kBits16:
      return integer_text<std::uint16_t>(bytes, index);
    case Dtype::kUint32:
      return integer_text<std::uint32_t>(bytes, index);
    case Dtype::kUint64:
      return integer_text<std::uint64_t>(bytes, index);
    case Dtype::kBool:
      return bytes[index] == std::byte{0} ? "false" : "true";
    case Dtype::kComplex32:
      return pair_text(half_text<kFloat16Form>(bytes, 2 * index),
                       half_text<kFloat16Form>(bytes, 2 * index + 1));
    case Dtype::kBcomplex32:
      return pair_text(half_text<kBfloat16Form>(bytes, 2 * index),
                       half_text<kBfloat16Form>(bytes, 2 * index + 1));
    case Dtype::kComplex64:
      return pair_text(real_text(load_little<float>(bytes, index * 8)),
                       real_text(load_little<float>(bytes, index * 8 + 4)));
    case Dtype::kComplex128:
      return pair_text(real_text(load_little<double>(bytes, index * 16)),
                       real_text(load_little<double>(bytes, index * 16 + 8)));
    case Dtype::kUint8:
    case Dtype::kBits8:
    case Dtype::kBits1x8:
    case Dtype::kBits2x4:
    case Dtype::kBits4x2:
    case Dtype::kQuint8:
    case Dtype::kQuint4x2:
    case Dtype::kQuint2x4:
      return integer_text<std::uint8_t>(bytes, index);
    case Dtype::kUnknown:
    case Dtype::kCount:
      break;
  }
  return "null";
}

}  // namespace shw
