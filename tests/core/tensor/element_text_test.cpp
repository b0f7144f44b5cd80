#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "core/formats/items/items.h"
#include "core/tensor/convert.h"
#include "core/tensor/element_text.h"

using namespace shw;

namespace {

template <class T>
std::string text_of(Dtype dtype, T value) {
  Bytes bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return element_text(dtype, bytes, 0);
}

double read(const std::string& text) {
  if (text == "NaN") return std::nan("");
  if (text == "Infinity") return INFINITY;
  if (text == "-Infinity") return -INFINITY;
  return std::stod(text);
}

// The value of a code by the definition: sign * mantissa * 2^exponent.
double slow_value(const NarrowFloat& form, std::uint32_t code) {
  bool has_sign = form.specials != NarrowSpecials::kE8m0;
  std::uint32_t mantissa = code & ((1u << form.mantissa_bits) - 1);
  int last = (1 << form.exponent_bits) - 1;
  int exponent = static_cast<int>(code >> form.mantissa_bits) & last;
  bool negative = has_sign && (code >> (form.exponent_bits + form.mantissa_bits)) != 0;
  bool all_ones = exponent == last && mantissa == (1u << form.mantissa_bits) - 1;
  if (form.specials == NarrowSpecials::kIeee && exponent == last)
    return mantissa != 0 ? std::nan("") : negative ? -INFINITY : INFINITY;
  if (form.specials == NarrowSpecials::kFn && all_ones) return std::nan("");
  if (form.specials == NarrowSpecials::kE8m0 && exponent == last) return std::nan("");
  if (form.specials == NarrowSpecials::kFnuz && negative && exponent == 0 && mantissa == 0)
    return std::nan("");
  double value = form.specials == NarrowSpecials::kE8m0 ? std::ldexp(1.0, exponent - form.bias)
                 : exponent == 0
                     ? std::ldexp(static_cast<double>(mantissa), 1 - form.bias - form.mantissa_bits)
                     : std::ldexp(static_cast<double>(mantissa + (1u << form.mantissa_bits)),
                                  exponent - form.bias - form.mantissa_bits);
  return negative ? -value : value;
}

bool same_value(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// Tests every code: its value, its text, and that the text is parsed to the same code, both as
// double and through float. Then every middle between neighbours: the even one wins.
template <NarrowFloat form>
void check_all(Dtype dtype, std::uint32_t codes) {
  CAPTURE(name(dtype));
  std::size_t longest = 0;
  for (std::uint32_t code = 0; code < codes; ++code) {
    CAPTURE(code);
    double value = slow_value(form, code);
    REQUIRE(same_value(static_cast<double>(from_narrow<form>(code)), value));
    REQUIRE(same_value(from_narrow<form, double>(code), value));
    std::string text = size_of(dtype) == 2 ? text_of(dtype, static_cast<std::uint16_t>(code))
                                           : text_of(dtype, static_cast<std::uint8_t>(code));
    if (dtype == Dtype::kFloat4E2m1fnX2) text = text.substr(1, text.find(',') - 1);
    if (std::isnan(value)) {
      REQUIRE(text == "NaN");
      REQUIRE(std::isnan(from_narrow<form>(to_narrow<form>(std::nanf("")))));
      continue;
    }
    REQUIRE(to_narrow<form, double>(read(text)) == code);
    REQUIRE(to_narrow<form, float>(static_cast<float>(read(text))) == code);
    longest = std::max(longest, text.size());
  }
  CHECK(longest <= 12);
}

template <NarrowFloat form>
void check_ties(std::uint32_t positive_codes) {
  for (std::uint32_t code = 0; code + 1 < positive_codes; ++code) {
    double low = slow_value(form, code), high = slow_value(form, code + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    CAPTURE(code);
    double middle = low + (high - low) / 2;
    std::uint32_t even = code % 2 == 0 ? code : code + 1;
    REQUIRE(to_narrow<form, double>(middle) == even);
    REQUIRE(to_narrow<form, double>(std::nextafter(middle, low)) == code);
    REQUIRE(to_narrow<form, double>(std::nextafter(middle, high)) == code + 1);
    auto as_float = static_cast<float>(middle);
    if (static_cast<double>(as_float) == middle) REQUIRE(to_narrow<form>(as_float) == even);
  }
}

}  // namespace

TEST_CASE(
    "every code of every narrow float has the value of its definition and a text that reads back") {
  check_all<kFloat16Form>(Dtype::kFloat16, 65536);
  check_all<kBfloat16Form>(Dtype::kBfloat16, 65536);
  check_all<kE4m3fnForm>(Dtype::kFloat8E4m3fn, 256);
  check_all<kE5m2Form>(Dtype::kFloat8E5m2, 256);
  check_all<kE4m3fnuzForm>(Dtype::kFloat8E4m3fnuz, 256);
  check_all<kE5m2fnuzForm>(Dtype::kFloat8E5m2fnuz, 256);
  check_all<kE8m0Form>(Dtype::kFloat8E8m0fnu, 256);
  check_all<kE2m1fnForm>(Dtype::kFloat4E2m1fnX2, 16);
}

TEST_CASE("a value in the middle of two codes becomes the even one") {
  check_ties<kFloat16Form>(0x7C00);
  check_ties<kBfloat16Form>(0x7F80);
  check_ties<kE4m3fnForm>(0x7F);
  check_ties<kE5m2Form>(0x7C);
  check_ties<kE4m3fnuzForm>(0x80);
  check_ties<kE5m2fnuzForm>(0x80);
  check_ties<kE2m1fnForm>(8);
}

TEST_CASE("what is too large becomes infinity, or NaN where there is none, as in torch") {
  CHECK(to_narrow<kFloat16Form>(65519.0f) == 0x7BFF);
  CHECK(to_narrow<kFloat16Form>(65520.0f) == 0x7C00);
  CHECK(to_narrow<kBfloat16Form>(-INFINITY) == 0xFF80);
  CHECK(to_narrow<kE4m3fnForm>(464.0f) == 0x7E);
  CHECK(to_narrow<kE4m3fnForm>(465.0f) == 0x7E);
  CHECK(to_narrow<kE4m3fnForm>(-INFINITY) == 0xFE);
  CHECK(to_narrow<kE4m3fnForm>(NAN) == 0x7F);
  // 500 is cast to this value, but is not equal to it.
  CHECK(text_of(Dtype::kFloat8E4m3fn, std::uint8_t{0x7E}) == "450");
  CHECK(to_narrow<kE4m3fnuzForm>(1000.0f) == 0x80);
  CHECK(to_narrow<kE4m3fnuzForm>(-0.0f) == 0);
  CHECK(to_narrow<kE5m2Form>(1e6f) == 0x7C);
}

TEST_CASE("elements are written as the shortest text that reads back") {
  CHECK(text_of(Dtype::kFloat32, 0.1f) == "0.1");
  CHECK(text_of(Dtype::kFloat64, 1.0 / 3) == "0.3333333333333333");
  CHECK(text_of(Dtype::kFloat32, -0.0f) == "-0.0");
  CHECK(text_of(Dtype::kFloat64, -std::numeric_limits<double>::infinity()) == "-Infinity");
  CHECK(text_of(Dtype::kBfloat16, std::uint16_t{0x3DCD}) == "0.1");
  CHECK(text_of(Dtype::kFloat16, std::uint16_t{0x2E66}) == "0.1");
  CHECK(text_of(Dtype::kFloat8E8m0fnu, std::uint8_t{127}) == "1");
  CHECK(text_of(Dtype::kFloat4E2m1fnX2, std::uint8_t{0xF1}) == "[0.5, -6]");
  CHECK(text_of(Dtype::kBool, std::uint8_t{1}) == "true");
  CHECK(text_of(Dtype::kInt8, std::int8_t{-128}) == "-128");
  CHECK(text_of(Dtype::kUint64, ~std::uint64_t{0}) == "18446744073709551615");
  CHECK(text_of(Dtype::kBits8, std::uint8_t{200}) == "200");
  CHECK(text_of(Dtype::kComplex64, std::array<float, 2>{1.5f, -2.0f}) == "[1.5, -2]");
  CHECK(text_of(Dtype::kComplex32, std::array<std::uint16_t, 2>{0x3C00, 0xC000}) == "[1, -2]");
  CHECK(element_text(Dtype::kFloat32, Bytes(7), 1) == "null");
}
