// Which bit, if one alone was flipped, turned one CRC-32 into another.
//
// CRCs of equal length are linear: a flipped bit changes the CRC by x^n modulo the polynomial, n
// the number of bits from it to the end, whatever the bytes are. n is found as a discrete
// logarithm, in steps of 65,536 bits. The polynomial's period is 2^32 - 1 bits, so the bit is the
// only one; but any other damage looks like one flipped bit with the chance of length / 2^32 bits.
#pragma once

#include <cstdint>
#include <optional>

namespace shw {

struct FlippedBit {
  std::uint64_t byte = 0;  // of the payload
  unsigned bit = 0;        // 0: the lowest
};
// Nothing where no single bit of `length` bytes does, or where they are more than kMaxFlipped.
std::optional<FlippedBit> flipped_bit(std::uint32_t expected, std::uint32_t actual,
                                      std::uint64_t length);
// Longer, and what is found would be chance in one of eight cases.
inline constexpr std::uint64_t kMaxFlipped = std::uint64_t{64} << 20;

}  // namespace shw
