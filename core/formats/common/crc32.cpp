#include "core/formats/common/crc32.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shw {
namespace {

std::uint32_t crc32_zlib(BytesView bytes, std::uint32_t crc) {
  while (!bytes.empty()) {
    std::size_t part = std::min<std::size_t>(bytes.size(), std::size_t{1} << 30);
    crc = static_cast<std::uint32_t>(
        ::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(part)));
    bytes = bytes.subspan(part);
  }
  return crc;
}

#if defined(__x86_64__)
// Folding by carry-less multiplication: V. Gopal et al., "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Intel 2009. The constants are x^n mod P, reflected, for
// the distances of 64, 16 and 8 bytes, then Barrett's pair.
__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i state, __m128i keys, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(state, keys, 0x00);
  __m128i high = _mm_clmulepi64_si128(state, keys, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Takes a multiple of 16 bytes, at least 64, and the inverted register.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t crc32_folded(const std::byte* data,
                                                                    std::size_t length,
                                                                    std::uint32_t reg) {
  const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
  auto load = [&](std::size_t at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
  };
  __m128i a = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(reg)));
  __m128i b = load(16), c = load(32), d = load(48);
  std::size_t at = 64;
  for (; length - at >= 64; at += 64) {
    a = fold(a, by_64, load(at));
    b = fold(b, by_64, load(at + 16));
    c = fold(c, by_64, load(at + 32));
    d = fold(d, by_64, load(at + 48));
  }
  a = fold(a, by_16, b);
  a = fold(a, by_16, c);
  a = fold(a, by_16, d);
  for (; at < length; at += 16) a = fold(a, by_16, load(at));

  // 128 bits to 64, 64 to 32.
  const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);
  __m128i t = _mm_clmulepi64_si128(a, by_16, 0x10);
  a = _mm_xor_si128(_mm_srli_si128(a, 8), t);
  t = _mm_srli_si128(a, 4);
  a = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), by_8, 0x00);
  a = _mm_xor_si128(a, t);
  t = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), barrett, 0x10);
  t = _mm_clmulepi64_si128(_mm_and_si128(t, low_32), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, t), 1));
}

bool can_fold() {
  static const bool yes =
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  return yes;
}
#endif

}  // namespace

std::uint32_t crc32_of(BytesView bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  if (bytes.size() >= 64 && can_fold()) {
    std::size_t folded = bytes.size() & ~std::size_t{15};
    crc = ~crc32_folded(bytes.data(), folded, ~crc);
    bytes = bytes.subspan(folded);
  }
#endif
  return crc32_zlib(bytes, crc);
}

// A zero byte only multiplies the inverted register by x^8, and joining with an empty CRC does
// exactly that.
std::uint32_t crc32_of_zeros(std::uint32_t crc, std::uint64_t count) {
  return ~crc32_joined(~crc, 0, count);
}

std::uint32_t crc32_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_length) {
  // zlib takes a signed length: 2^62 at a time is more than any file.
  return static_cast<std::uint32_t>(
      ::crc32_combine(first, second, static_cast<z_off_t>(second_length)));
}

}  // namespace shw
