// Finds the single flipped bit that explains two different CRC-32 values.
//
// CRCs of equal length are linear: a flipped bit changes the CRC by x^n modulo the polynomial,
// where n is its distance from the end in bits. n is the discrete logarithm, found in steps of
// 65,536. The period of the polynomial is 2^32 - 1 bits, so the bit is unique; but other damage
// looks like one flipped bit with probability length / 2^32 (in bits).
#pragma once

#include <cstdint>
#include <optional>

namespace shw {

struct FlippedBit {
  std::uint64_t byte = 0;  // in the payload
  unsigned bit = 0;        // 0: least significant
};
// nullopt if no single bit of `length` bytes explains it, or if length > kMaxFlipped.
std::optional<FlippedBit> flipped_bit(std::uint32_t expected, std::uint32_t actual,
                                      std::uint64_t length);
// Above this size one of eight results would be chance.
inline constexpr std::uint64_t kMaxFlipped = std::uint64_t{64} << 20;

}  // namespace shw
