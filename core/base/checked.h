// Overflow-checked arithmetic on numbers from files: nullopt instead of a wrapped value.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace shw {

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> checked_sub(T a, T b) {
  T difference{};
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Converts to a narrower or differently signed type; nullopt if the value does not fit.
template <std::integral To, std::integral From>
constexpr std::optional<To> narrow(From value) {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

// a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// Product of extents; nullopt if an extent is negative or the product overflows int64. The product
// of no extents is 1, because a 0-d tensor has one element.
constexpr std::optional<std::int64_t> checked_volume(std::span<const std::int64_t> extents) {
  std::int64_t volume = 1;
  for (std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    auto product = checked_mul(volume, extent);
    // A later zero makes the volume zero even after an overflow.
    if (!product) {
      for (std::int64_t other : extents) {
        if (other == 0) return 0;
      }
      return std::nullopt;
    }
    volume = *product;
  }
  return volume;
}

}  // namespace shw
