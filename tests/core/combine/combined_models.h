// Small models for tests of combining, as numbers, and their elements when read.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/laid.h"
#include "core/formats/items/items.h"
#include "core/tensor/cast.h"

namespace shw::test {

using Numbers = std::vector<float>;

inline Numbers random_numbers(std::size_t count, std::mt19937& random) {
  Numbers numbers(count);
  for (float& one : numbers)
    one = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f;
  return numbers;
}

// The numbers in the dtype's encoding.
inline Bytes as_dtype(const Numbers& numbers, Dtype dtype) {
  const auto bytes = std::as_bytes(std::span(numbers));
  if (dtype == Dtype::kFloat32) return {bytes.begin(), bytes.end()};
  return cast_elements(Dtype::kFloat32, bytes, dtype).value();
}
inline Numbers rounded(const Numbers& numbers, Dtype dtype) {
  Bytes bytes = as_dtype(numbers, dtype);
  if (dtype != Dtype::kFloat32) bytes = cast_elements(dtype, bytes, Dtype::kFloat32).value();
  Numbers out(numbers.size());
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

inline TiledTensor numbers_tensor(const std::string& fqn, const Extents& shape,
                                  const Numbers& numbers, Dtype dtype = Dtype::kFloat32) {
  return {fqn, dtype, shape, as_dtype(numbers, dtype), {}};
}

inline Bytes bytes_of(const Checkpoint& checkpoint, const std::string& fqn) {
  CAPTURE(fqn);
  const auto tensor = checkpoint.find(fqn);
  REQUIRE(tensor.has_value());
  auto values = read_tensor(checkpoint, *tensor);
  INFO((values ? std::string() : values.error().message));
  REQUIRE(values.has_value());
  REQUIRE(values->uncovered == 0);
  return values->bytes;
}

inline Numbers numbers_of(const Checkpoint& checkpoint, const std::string& fqn) {
  Bytes bytes = bytes_of(checkpoint, fqn);
  const Dtype dtype = checkpoint.dtype(*checkpoint.find(fqn));
  if (dtype != Dtype::kFloat32) bytes = cast_elements(dtype, bytes, Dtype::kFloat32).value();
  Numbers out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// Equal up to the order in which floats are summed and one rounding to `dtype`.
inline void check_near(const Numbers& is, const Numbers& expected, double relative) {
  REQUIRE(is.size() == expected.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    CAPTURE(i);
    CHECK(is[i] == doctest::Approx(expected[i]).epsilon(relative));
  }
}

}  // namespace shw::test
