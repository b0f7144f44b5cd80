// The fingerprint of a tensor: a weighted sum over its elements, where the weight depends on the
// row-major index in the whole tensor. Parts add up in any order over chunks, slabs, threads and
// ranks, so the value is equal for every tiling of the same elements. Zeros add nothing, so holes
// are free.
//
//   An element of w bytes is ceil(w / 4) words of 32 bits, little-endian; narrower ones are
//   zero-extended. Word k = index * words + part.
//   F = sum over k of u(k / 64) * v(k % 64) * word_k      modulo p = 2^61 - 1
//   u: splitmix64's finaliser of the block number, modulo p and never 0; v: 64 distinct odd numbers
//   of 26 bits, so that 64 products with 32-bit words fit in 64 bits.
//
// Two such sums with different u and v give 122 bits. p is prime, so a change of one word always
// shows; random changes in one block collide with probability 2^-116, a few equal bit flips in one
// block (signs, say), which only v separates, with 2^-54. It detects accidents, not attacks: the
// weights are public.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/tensor/layout.h"

namespace shw {

inline constexpr std::uint64_t kFingerprintPrime = (std::uint64_t{1} << 61) - 1;
inline constexpr std::uint64_t kFingerprintBlock = 64;  // words per block

SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_reduced(std::uint64_t value) {
  value = (value & kFingerprintPrime) + (value >> 61);
  return value >= kFingerprintPrime ? value - kFingerprintPrime : value;
}

struct Fingerprint {
  std::uint64_t a = 0, b = 0;  // both below p
  SHW_HOST_DEVICE constexpr Fingerprint& operator+=(const Fingerprint& other) {
    a = fingerprint_reduced(a + other.a);
    b = fingerprint_reduced(b + other.b);
    return *this;
  }
  friend constexpr bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// 32 hex digits, `a` first, and the inverse; nullopt if the text is not a fingerprint.
std::string to_hex(const Fingerprint& fingerprint);
std::optional<Fingerprint> fingerprint_of_hex(std::string_view text);

// Words per element; the size must be 1, 2, 4, 8 or 16.
SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_words_per_element(std::size_t element_size) {
  return element_size <= 4 ? 1 : element_size / 4;
}

SHW_HOST_DEVICE constexpr std::uint64_t splitmix64(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_seed(int sum) {
  return sum == 0 ? 0x9E3779B97F4A7C15u : 0xD1B54A32D192ED03u;
}

// u: the weight of a block in sum 0 or 1.
SHW_HOST_DEVICE constexpr std::uint64_t block_weight(int sum, std::uint64_t block) {
  std::uint64_t weight =
      fingerprint_reduced(splitmix64(block * 0x9E3779B97F4A7C15u + fingerprint_seed(sum)));
  return weight == 0 ? 1 : weight;
}

// v: the weight of a word within its block.
SHW_HOST_DEVICE constexpr std::uint32_t word_weight(int sum, std::uint32_t at) {
  return static_cast<std::uint32_t>(splitmix64(~fingerprint_seed(sum) * (at + 1)) >> 38) | 1u;
}

SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_product(std::uint64_t x, std::uint64_t y) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(x) * y;
  return fingerprint_reduced((static_cast<std::uint64_t>(product) & kFingerprintPrime) +
                             static_cast<std::uint64_t>(product >> 61));
}

// Adds one block's sums of v * word, each below 2^64.
SHW_HOST_DEVICE constexpr void add_block(Fingerprint& to, std::uint64_t block, std::uint64_t sum_a,
                                         std::uint64_t sum_b) {
  to += {fingerprint_product(block_weight(0, block), fingerprint_reduced(sum_a)),
         fingerprint_product(block_weight(1, block), fingerprint_reduced(sum_b))};
}

// Adds contiguous elements whose indices in the tensor are consecutive from `first_index` on.
void add_run(Fingerprint& to, const std::byte* elements, std::size_t element_size,
             std::uint64_t first_index, std::uint64_t count);

// Adds strided elements. `pair.source` is their byte layout relative to `elements`; `pair.target`
// gives their tensor indices (strides and offset in elements, row-major). The pair must be
// canonical (core/tensor/layout.h), which merges contiguous runs.
void add_strided(Fingerprint& to, const std::byte* elements, const LayoutPair& pair,
                 std::size_t element_size);

}  // namespace shw
