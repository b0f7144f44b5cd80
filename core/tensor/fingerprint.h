// The fingerprint of a tensor: a sum over its elements, each weighted by its row-major index in the
// whole tensor. It adds up over tiles, slabs, threads and workers in any order, so that it is equal
// for every tiling of the same elements; and zeros add nothing, so that holes are free.
//
//   An element of w bytes is ceil(w / 4) words of 32 bits, little-endian; narrower ones are
//   zero-extended. Word k = index * words + part.
//   F = sum over k of u(k / 64) * v(k % 64) * word_k      modulo p = 2^61 - 1
//   u: splitmix64's finaliser of the number of the block, modulo p and never 0; v: 64 distinct odd
//   numbers of 26 bits, so that 64 products of 32 bits add up in 64 bits.
//
// Twice, with other u and v: 122 bits. p is prime, so that a change of one word always shows; of
// random words in one block one change in about 2^116 passes, and of a few equal flips in one block
// (signs, say), where only v tells them apart, one in about 2^54. It proves against accidents, not
// against somebody who looks for a collision: the weights are no secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/tensor/layout.h"

namespace shw {

inline constexpr std::uint64_t kFingerprintPrime = (std::uint64_t{1} << 61) - 1;
inline constexpr std::uint64_t kFingerprintBlock = 64;  // words

SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_reduced(std::uint64_t value) {
  value = (value & kFingerprintPrime) + (value >> 61);
  return value >= kFingerprintPrime ? value - kFingerprintPrime : value;
}

struct Fingerprint {
  std::uint64_t a = 0, b = 0;  // below the prime
  SHW_HOST_DEVICE constexpr Fingerprint& operator+=(const Fingerprint& other) {
    a = fingerprint_reduced(a + other.a);
    b = fingerprint_reduced(b + other.b);
    return *this;
  }
  friend constexpr bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// 32 hex digits, a first; and back, where it is one.
std::string to_hex(const Fingerprint& fingerprint);
std::optional<Fingerprint> fingerprint_of_hex(std::string_view text);

// Words of an element; its size is 1, 2, 4, 8 or 16.
SHW_HOST_DEVICE constexpr std::uint64_t words_of_element(std::size_t element_size) {
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

// u: the weight of a block, of sum 0 or 1.
SHW_HOST_DEVICE constexpr std::uint64_t block_weight(int sum, std::uint64_t block) {
  std::uint64_t weight =
      fingerprint_reduced(splitmix64(block * 0x9E3779B97F4A7C15u + fingerprint_seed(sum)));
  return weight == 0 ? 1 : weight;
}

// v: the weight of a word in its block.
SHW_HOST_DEVICE constexpr std::uint32_t word_weight(int sum, std::uint32_t at) {
  return static_cast<std::uint32_t>(splitmix64(~fingerprint_seed(sum) * (at + 1)) >> 38) | 1u;
}

SHW_HOST_DEVICE constexpr std::uint64_t fingerprint_product(std::uint64_t x, std::uint64_t y) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(x) * y;
  return fingerprint_reduced((static_cast<std::uint64_t>(product) & kFingerprintPrime) +
                             static_cast<std::uint64_t>(product >> 61));
}

// Adds a block's sums of v * word, each below 2^64.
SHW_HOST_DEVICE constexpr void add_block(Fingerprint& to, std::uint64_t block, std::uint64_t sum_a,
                                         std::uint64_t sum_b) {
  to += {fingerprint_product(block_weight(0, block), fingerprint_reduced(sum_a)),
         fingerprint_product(block_weight(1, block), fingerprint_reduced(sum_b))};
}

// Elements side by side that follow each other in the tensor, from its element `first_index` on.
void add_run(Fingerprint& to, const std::byte* elements, std::size_t element_size,
             std::uint64_t first_index, std::uint64_t count);

// Elements anywhere: `pair.source` says in bytes where they lie from `elements` on, `pair.target`
// which ones of the tensor they are: its strides and offset count elements, row-major. The pair is
// a canonical one (core/tensor/layout.h), which keeps runs together.
void add_strided(Fingerprint& to, const std::byte* elements, const LayoutPair& pair,
                 std::size_t element_size);

}  // namespace shw
