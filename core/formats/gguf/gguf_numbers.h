// Numbers and tables for decoding GGUF blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/tensor/convert.h"

namespace shw {

inline unsigned gguf_byte(const std::byte* at) {
  return std::to_integer<unsigned>(*at);
}
inline int gguf_signed(const std::byte* at) {
  return static_cast<std::int8_t>(gguf_byte(at));
}
inline unsigned gguf_u16(const std::byte* at) {
  return gguf_byte(at) | gguf_byte(at + 1) << 8;
}
inline float gguf_half(const std::byte* at) {
  return from_narrow<kFloat16Form>(gguf_u16(at));
}
// Bit `bit` of a mask; the first byte holds the lowest bits.
inline unsigned gguf_bit(const std::byte* mask, unsigned bit) {
  return gguf_byte(mask + bit / 8) >> (bit % 8) & 1;
}

// The 16 values of a non-linear 4-bit code (llama.cpp, kvalues_iq4nl).
inline constexpr std::int8_t kGgufNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
// The 16 values of FP4 (e2m1), doubled to be integers.
inline constexpr std::int8_t kGgufFp4Doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                    0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace shw
