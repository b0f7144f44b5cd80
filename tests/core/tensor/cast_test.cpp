// Casts several elements at a time beside the scalar conversions of convert.h, which torch judges.
#include <doctest/doctest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
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

// Every `step`th float, and all of those around each power of two.
template <NarrowFloat form, class Code>
void check_narrowing(Dtype dtype, std::uint64_t step) {
  std::vector<std::uint32_t> bits;
  std::vector<Code> codes;
  auto flush = [&] {
    codes.resize(bits.size());
    cast_row(Dtype::kFloat32, reinterpret_cast<const std::byte*>(bits.data()), 4, dtype,
             reinterpret_cast<std::byte*>(codes.data()), sizeof(Code),
             static_cast<std::int64_t>(bits.size()));
    for (std::size_t i = 0; i < bits.size(); ++i) {
      auto wanted = static_cast<Code>(to_narrow<form>(std::bit_cast<float>(bits[i])));
      if (codes[i] != wanted) FAIL(name(dtype) << " of float " << bits[i]);
    }
    bits.clear();
  };
  for (std::uint64_t value = 0; value < std::uint64_t{1} << 32; value += step) {
    bits.push_back(static_cast<std::uint32_t>(value));
    if (bits.size() == 4096) flush();
  }
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (std::uint32_t near = 0; near < 200; ++near) bits.push_back((exponent << 23) + near - 100);
    // Halves and what lies beside them, for every number of bits that are kept.
    for (int kept = 1; kept < 23; ++kept) {
      for (std::uint32_t near = 0; near < 3; ++near)
        bits.push_back((exponent << 23) + (1u << (22 - kept)) + near - 1);
    }
    flush();
  }
  flush();
}

// SHARDWRIGHT_ALL_FLOATS: every one of 2^32, two minutes.
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

TEST_CASE("elements that lie apart are cast like those side by side") {
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
