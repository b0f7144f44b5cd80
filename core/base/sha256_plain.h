// SHA-256 in plain C++ (FIPS 180-4), for programs that are built without libcrypto: the portable
// one would carry 5 MB of it for this alone. 0.3 GB/s; libcrypto uses the processor's instructions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shw {

class PlainSha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;
  void add(std::span<const std::byte> bytes);
  // Ends it: nothing is added afterwards.
  Digest digest();

 private:
  static constexpr std::size_t kBlock = 64;
  void add_block(std::span<const std::byte, kBlock> block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> begun_{};  // a block that is not full yet
  std::uint64_t length_ = 0;               // bytes added
};

}  // namespace shw
