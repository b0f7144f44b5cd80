#include "core/formats/zip/crc32_folded.h"

#include <libdeflate.h>

#if defined(__x86_64__) && LIBDEFLATE_VERSION_MAJOR == 1 && LIBDEFLATE_VERSION_MINOR < 20
#include <cpuid.h>
#include <immintrin.h>

#include <array>
#include <cstring>

namespace shw {
namespace {

// Method of Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction" (Intel, 2009). Bytes are a polynomial over GF(2); 128 bits that are D bits ahead are
// replaced by their product with x^D mod P. The low 64 bits (the higher powers, because bits are
// reflected) are multiplied by x^(D + 32), the high ones by x^(D - 32); 32 is the width of the
// register.

// x^n mod P, reflected and shifted by one bit, because products of reflected numbers are one bit
// short.
constexpr long long power_of_x(int n) {
  std::uint32_t power = 0x80000000;  // x^0
  for (int i = 0; i < n; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? 0xEDB88320 : 0);
  return static_cast<long long>(std::uint64_t{power} << 1);
}
static_assert(power_of_x(4 * 128 + 32) == 0x154442BD4 && power_of_x(4 * 128 - 32) == 0x1C6E41596 &&
              power_of_x(128 + 32) == 0x1751997D0 && power_of_x(128 - 32) == 0x0CCAA009E);

constexpr std::size_t kVector = sizeof(__m256i);
constexpr std::size_t kAtOnce = 4 * kVector;

[[gnu::target("avx2,vpclmulqdq")]] inline __m256i load(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// Folds both halves of `ahead` by `powers` and adds the bytes there.
[[gnu::target("avx2,vpclmulqdq")]] inline __m256i fold(__m256i ahead, __m256i powers,
                                                       __m256i there) {
  const __m256i low = _mm256_clmulepi64_epi128(ahead, powers, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(ahead, powers, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), there);
}

// Reduces `bytes`, a multiple of kAtOnce, with initial register `crc`.
[[gnu::target("avx2,vpclmulqdq")]] std::array<std::byte, kVector> remainder_of(const std::byte* at,
                                                                               std::size_t size,
                                                                               std::uint32_t crc) {
  constexpr std::size_t kLanes = kAtOnce / kVector;
  __m256i held[kLanes];  // std::array would lose the alignment
  for (std::size_t i = 0; i < kLanes; ++i) held[i] = load(at + i * kVector);
  held[0] =
      _mm256_xor_si256(held[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(crc))));
  constexpr int kFar = kAtOnce * 8;
  const __m256i far = _mm256_set_epi64x(power_of_x(kFar - 32), power_of_x(kFar + 32),
                                        power_of_x(kFar - 32), power_of_x(kFar + 32));
  for (std::size_t done = kAtOnce; done < size; done += kAtOnce)
    for (std::size_t i = 0; i < kLanes; ++i)
      held[i] = fold(held[i], far, load(at + done + i * kVector));
  constexpr int kNext = kVector * 8;
  const __m256i next = _mm256_set_epi64x(power_of_x(kNext - 32), power_of_x(kNext + 32),
                                         power_of_x(kNext - 32), power_of_x(kNext + 32));
  for (std::size_t i = 1; i < kLanes; ++i) held[i] = fold(held[i - 1], next, held[i]);
  std::array<std::byte, kVector> out;
  std::memcpy(out.data(), &held[kLanes - 1], kVector);
  return out;
}

// Uses cpuid directly, because zig lacks the runtime library behind __builtin_cpu_supports.
// Intel's Software Developer's Manual, volume 1, 14.3: the system must save the wide registers too.
[[gnu::target("xsave")]] bool has_wide_products() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kOsxsave = 1u << 27, kAvx2 = 1u << 5, kVpclmulqdq = 1u << 10;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0) return false;
  constexpr unsigned long long kSseAndAvx = 6;
  if ((_xgetbv(0) & kSseAndAvx) != kSseAndAvx) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kAvx2) != 0 && (c & kVpclmulqdq) != 0;
}

}  // namespace

bool can_fold_crc32() {
  static const bool can = has_wide_products();
  return can;
}

std::uint32_t crc32_folded(BytesView bytes, std::uint32_t crc) {
  const std::size_t whole = bytes.size() / kAtOnce * kAtOnce;
  if (whole != 0) {
    // The remainder continues as 32 bytes with an empty register.
    const auto left = remainder_of(bytes.data(), whole, ~crc);
    crc = libdeflate_crc32(~std::uint32_t{0}, left.data(), left.size());
  }
  return libdeflate_crc32(crc, bytes.data() + whole, bytes.size() - whole);
}

}  // namespace shw

#else

namespace shw {

bool can_fold_crc32() {
  return false;
}

std::uint32_t crc32_folded(BytesView bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

}  // namespace shw

#endif
