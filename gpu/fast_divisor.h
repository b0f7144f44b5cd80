// Division by a number known before kernel launch: a high product, a sum and a shift instead of
// about thirty instructions. Dividend below 2^31, divisor from 1 to 2^31.
#pragma once

#include <cstdint>

#include "core/tensor/convert.h"  // SHW_HOST_DEVICE

namespace shw {

struct FastDivisor {
  std::uint32_t multiplier = 1, shift = 0;
};

constexpr FastDivisor fast_divisor(std::uint32_t divisor) {
  FastDivisor fast;
  fast.shift = 0;
  while (std::uint64_t{1} << fast.shift < divisor) ++fast.shift;
  const std::uint64_t above = (std::uint64_t{1} << fast.shift) - divisor;
  fast.multiplier = static_cast<std::uint32_t>((above << 32) / divisor + 1);
  return fast;
}

SHW_HOST_DEVICE constexpr std::uint32_t divided(std::uint32_t value, FastDivisor by) {
  const auto high = static_cast<std::uint32_t>(std::uint64_t{value} * by.multiplier >> 32);
  return (high + value) >> by.shift;
}

}  // namespace shw
