// Compares casts of several elements at a time with the scalar conversions of convert.h, which are
// compared with torch.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "core/tensor/cast.h"
#include "core/tensor/convert.h"

using namespace shw;

namespace {

template <NarrowFloat form, class Code>
void check_widening(Dtype dtype) {
  for (std::uint32_t code = 0; code <= static_cast<Code>(~Code{0}); ++code) {
    auto narrow = static_cast<Code>(code);
    float wide = 0, wanted = from_narrow<form>(code);
    cast_row(dtype, reinterpret_cast<const std::byte*>(&narrow), sizeof narrow, Dtype::kFloat32,
             reinterpret_cast<std::byte*>(&wide), 4, 1);
    if (std::memcmp(&wide, &wanted, 4) != 0) FAIL(name(dtype) << " " << code);
  }
}

// True if the value is out of range: at least half a step above the largest number.
template <NarrowFloat form>
bool is_lost(float value, float became) {
  if (std::isnan(value)) return false;
  if (std::isnan(became) || std::isinf(became) != std::isinf(value)) return true;
  const double largest = from_narrow<form>(largest_code<form>());
  const double before = from_narrow<form>(largest_code<form>() - 1);
  return std::isfinite(value) && std::abs(double{value}) > largest + (largest - before) / 2;
}

// Every `step`th float, and all floats around each power of two.
template <NarrowFloat form, class Code>
void check_narrowing(Dtype dtype, std::uint64_t step) {
  std::vector<std::uint32_t> bits;
  std::vector<Code> codes;
  auto flush = [&] {
    codes.resize(bits.size());
    std::vector<std::uint8_t> out_of_range(bits.size(), 0);
    cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(bits.data()), 4, dtype,
             reinterpret_cast<std::byte*>(codes.data()), sizeof(Code),
             static_cast<std::int64_t>(bits.size()), out_of_range.data());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const auto value = std::bit_cast<float>(bits[i]);
      auto wanted = static_cast<Code>(to_narrow<form>(value));
      if (codes[i] != wanted) FAIL(name(dtype) << " of float " << bits[i]);
      if ((out_of_range[i] != 0) != is_lost<form>(value, from_narrow<form>(codes[i])))
        FAIL(name(dtype) << ": out of range " << int{out_of_range[i]} << " of float " << bits[i]);
    }
    bits.clear();
  };
  for (std::uint64_t value = 0; value < std::uint64_t{1} << 32; value += step) {
    bits.push_back(static_cast<std::uint32_t>(value));
    if (bits.size() == 4096) flush();
  }
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (std::uint32_t near = 0; near < 200; ++near) bits.push_back((exponent << 23) + near - 100);
    // Ties and their neighbours, for every number of mantissa bits.
    for (int kept = 1; kept < 23; ++kept) {
      for (std::uint32_t near = 0; near < 3; ++near)
        bits.push_back((exponent << 23) + (1u << (22 - kept)) + near - 1);
    }
    flush();
  }
  flush();
}

// SHARDWRIGHT_ALL_FLOATS: all 2^32, two minutes.
std::uint64_t float_step() {
  return std::getenv("SHARDWRIGHT_ALL_FLOATS") != nullptr ? 1 : 10'007;
}

template <NarrowFloat form, class Code>
void check_form(Dtype dtype) {
  check_widening<form, Code>(dtype);
  check_narrowing<form, Code>(dtype, float_step());
}

}  // namespace

TEST_CASE("casts of many elements are the scalar conversions, code by code") {
  check_form<kBfloat16Form, std::uint16_t>(Dtype::kBfloat16);
  check_form<kFloat16Form, std::uint16_t>(Dtype::kFloat16);
  check_form<kE4m3fnForm, std::uint8_t>(Dtype::kFloat8E4m3fn);
  check_form<kE5m2Form, std::uint8_t>(Dtype::kFloat8E5m2);
  check_form<kE4m3fnuzForm, std::uint8_t>(Dtype::kFloat8E4m3fnuz);
  check_form<kE5m2fnuzForm, std::uint8_t>(Dtype::kFloat8E5m2fnuz);
}

TEST_CASE("elements that are apart are cast like those side by side") {
  std::vector<float> values(700);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.37f - 90;
  std::vector<std::uint16_t> beside(350), apart(1050, 7);
  const auto* in = reinterpret_cast<const std::byte*>(values.data());
  cast_row(Dtype::kFloat32, in, 8, Dtype::kBfloat16, reinterpret_cast<std::byte*>(beside.data()), 2,
           350);
  cast_row(Dtype::kFloat32, in, 8, Dtype::kBfloat16, reinterpret_cast<std::byte*>(apart.data()), 6,
           350);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    CHECK(apart[3 * i] == beside[i]);
    CHECK(apart[3 * i + 1] == 7);
    CHECK(beside[i] == to_narrow<kBfloat16Form>(values[2 * i]));
  }
}

TEST_CASE("a dtype holds all of another one where no number of that is out of range") {
  const std::vector<Dtype> floats{
      Dtype::kFloat64,    Dtype::kFloat32,      Dtype::kFloat16,        Dtype::kBfloat16,
      Dtype::kFloat8E5m2, Dtype::kFloat8E4m3fn, Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2fnuz};
  const double endless = std::numeric_limits<double>::infinity();
  for (Dtype from : floats) {
    // Infinities, the largest numbers, and values far from both.
    std::vector<std::byte> numbers;
    for (double value : {endless, -endless, 1e300, -3.4028234663852886e38, 3.3895313892515355e38,
                         65504.0, 57344.0, -57344.0, 448.0, 240.0, 1.0, 0.0, std::nan("")}) {
      std::byte wide[8], number[8];
      std::memcpy(wide, &value, 8);
      std::uint8_t is_out = 0;
      if (from == Dtype::kFloat64)
        std::memcpy(number, wide, 8);
      else
        cast_row(Dtype::kFloat64, wide, 8, from, number, 8, 1, &is_out);
      if (is_out == 0) numbers.insert(numbers.end(), number, number + 8);
    }
    const auto count = static_cast<std::int64_t>(numbers.size() / 8);
    for (Dtype to : floats) {
      CAPTURE(name(from));
      CAPTURE(name(to));
      if (from == to) {
        CHECK(can_represent(to, from));
        continue;
      }
      std::vector<std::byte> made(numbers.size());
      std::vector<std::uint8_t> out_of_range(static_cast<std::size_t>(count), 0);
      cast_row(from, numbers.data(), 8, to, made.data(), 8, count, out_of_range.data());
      const bool all_held = std::count(out_of_range.begin(), out_of_range.end(), 0) == count;
      // A double is cast by way of float unless float64 keeps it.
      CHECK(can_represent(to, from) == all_held);
    }
  }
}

TEST_CASE("doubles that no float is near are out of range, whatever they are cast to") {
  const std::vector<double> values{3.4028235677973362e38,
                                   3.4028235677973366e38,
                                   -1e300,
                                   1e300,
                                   std::numeric_limits<double>::infinity(),
                                   std::nan(""),
                                   464,
                                   465};
  auto flags = [&](Dtype to) {
    std::vector<std::byte> made(values.size() * 8);
    std::vector<std::uint8_t> out(values.size(), 0);
    cast_row(Dtype::kFloat64, reinterpret_cast<const std::byte*>(values.data()), 8, to, made.data(),
             8, static_cast<std::int64_t>(values.size()), out.data());
    return out;
  };
  using Flags = std::vector<std::uint8_t>;
  CHECK(flags(Dtype::kFloat32) == Flags{0, 1, 1, 1, 0, 0, 0, 0});
  CHECK(flags(Dtype::kBfloat16) == Flags{1, 1, 1, 1, 0, 0, 0, 0});
  CHECK(flags(Dtype::kFloat8E4m3fn) == Flags{1, 1, 1, 1, 1, 0, 0, 1});
}

TEST_CASE("what becomes of a number that is out of range is said") {
  CHECK(out_of_range_text(Dtype::kFloat8E4m3fn) == "what is beyond 448 becomes 448");
  CHECK(out_of_range_text(Dtype::kFloat8E4m3fnuz) == "what is beyond 240 becomes NaN");
  CHECK(out_of_range_text(Dtype::kFloat16) == "what is beyond 65504 becomes infinity");
  CHECK(out_of_range_text(Dtype::kFloat32) == "what is beyond 3.4028235e+38 becomes infinity");
}

TEST_CASE("a dtype keeps every value of another if all its codes come back from a cast") {
  const Dtype all[] = {Dtype::kFloat64,        Dtype::kFloat32,        Dtype::kFloat16,
                       Dtype::kBfloat16,       Dtype::kFloat8E4m3fn,   Dtype::kFloat8E5m2,
                       Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2fnuz, Dtype::kFloat8E8m0fnu};
  for (Dtype from : all) {
    const std::size_t size = size_of(from);
    if (size > 2) continue;
    const std::int64_t count = std::int64_t{1} << (8 * size);
    std::vector<std::uint16_t> codes(static_cast<std::size_t>(count)), back(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
    for (Dtype to : all) {
      if (from == to || !can_cast(from, to) || !can_cast(to, from)) continue;
      CAPTURE(name(from));
      CAPTURE(name(to));
      std::vector<std::byte> there(codes.size() * 8);
      std::vector<double> wide(codes.size());
      auto* codes_begin = reinterpret_cast<std::byte*>(codes.data());
      cast_row(from, codes_begin, 2, to, there.data(), 8, count);
      cast_row(to, there.data(), 8, from, reinterpret_cast<std::byte*>(back.data()), 2, count);
      cast_row(from, codes_begin, 2, Dtype::kFloat64, reinterpret_cast<std::byte*>(wide.data()), 8,
               count);
      bool is_same = true;
      for (std::size_t i = 0; i < codes.size(); ++i)
        is_same = is_same && (codes[i] == back[i] || std::isnan(wide[i]));
      CHECK(keeps_every_value(to, from) == is_same);
    }
  }
  CHECK(keeps_every_value(Dtype::kFloat64, Dtype::kFloat32));
  CHECK_FALSE(keeps_every_value(Dtype::kFloat32, Dtype::kFloat64));
  CHECK_FALSE(keeps_every_value(Dtype::kBfloat16, Dtype::kFloat32));
}
