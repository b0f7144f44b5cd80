#include "core/tensor/element_numbers.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "core/tensor/number_form.h"

namespace shw {
namespace {

// Table of all codes of a float type of at most two bytes.
template <NarrowFloat form>
const float* numbers_of_codes() {
  static const std::vector<float> numbers = [] {
    constexpr int kWidth =
        form.exponent_bits + form.mantissa_bits + (form.specials == NarrowSpecials::kE8m0 ? 0 : 1);
    std::vector<float> all(std::size_t{1} << kWidth);
    for (std::uint32_t code = 0; code < all.size(); ++code)
      all[code] = from_narrow<form, float>(code);
    return all;
  }();
  return numbers.data();
}

template <class Bits, class Number>
void convert(const std::byte* elements, std::size_t count, double* out, Number number) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<double>(number(code_at<Bits>(elements, i)));
}

template <class Whole>
void convert_whole(const std::byte* elements, std::size_t count, double* out) {
  convert<Whole>(elements, count, out, [](Whole whole) { return whole; });
}

template <class Bits, NarrowFloat form>
void convert_narrow(const std::byte* elements, std::size_t count, double* out) {
  const float* numbers = numbers_of_codes<form>();
  convert<Bits>(elements, count, out, [&](Bits code) { return numbers[code]; });
}

void convert_bfloat16(const std::byte* elements, std::size_t count, double* out) {
  convert<std::uint16_t>(elements, count, out, [](std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
  });
}

void convert_bool(const std::byte* elements, std::size_t count, double* out) {
  convert<std::uint8_t>(elements, count, out, [](std::uint8_t code) { return code != 0 ? 1 : 0; });
}

}  // namespace

ToNumbers to_numbers(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return convert_whole<double>;
    case Dtype::kFloat32:
      return convert_whole<float>;
    case Dtype::kBfloat16:
      return convert_bfloat16;
    case Dtype::kFloat16:
      return convert_narrow<std::uint16_t, kFloat16Form>;
    case Dtype::kFloat8E4m3fn:
      return convert_narrow<std::uint8_t, kE4m3fnForm>;
    case Dtype::kFloat8E5m2:
      return convert_narrow<std::uint8_t, kE5m2Form>;
    case Dtype::kFloat8E4m3fnuz:
      return convert_narrow<std::uint8_t, kE4m3fnuzForm>;
    case Dtype::kFloat8E5m2fnuz:
      return convert_narrow<std::uint8_t, kE5m2fnuzForm>;
    case Dtype::kFloat8E8m0fnu:
      return convert_narrow<std::uint8_t, kE8m0Form>;
    case Dtype::kInt8:
      return convert_whole<std::int8_t>;
    case Dtype::kInt16:
      return convert_whole<std::int16_t>;
    case Dtype::kInt32:
      return convert_whole<std::int32_t>;
    case Dtype::kInt64:
      return convert_whole<std::int64_t>;
    case Dtype::kUint8:
      return convert_whole<std::uint8_t>;
    case Dtype::kUint16:
      return convert_whole<std::uint16_t>;
    case Dtype::kUint32:
      return convert_whole<std::uint32_t>;
    case Dtype::kUint64:
      return convert_whole<std::uint64_t>;
    case Dtype::kBool:
      return convert_bool;
    default:
      return nullptr;
  }
}

}  // namespace shw
