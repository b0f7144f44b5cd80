#include "core/formats/zip/flipped_bit.h"

#include <doctest/doctest.h>

#include <random>

#include "core/formats/zip/crc32.h"

using namespace shw;

TEST_CASE("the bit that was flipped is found by the two checksums alone") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t length = 1 + random() % (i % 50 == 0 ? 3'000'000 : 200);
    Bytes bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const std::uint32_t expected = crc32_of(bytes);
    // The first and the last bits are tried too.
    const std::uint64_t at = i < 8 ? length - 1 : i < 16 ? 0 : random() % length;
    const unsigned bit = static_cast<unsigned>(i < 16 ? i % 8 : random() % 8);
    bytes[at] ^= static_cast<std::byte>(1u << bit);
    const auto found = flipped_bit(expected, crc32_of(bytes), length);
    REQUIRE(found.has_value());
    CHECK(found->byte == at);
    CHECK(found->bit == bit);
  }
}

TEST_CASE("a bit in front of the payload or behind it is none that was flipped") {
  Bytes bytes(64);
  const std::uint32_t expected = crc32_of(bytes);
  bytes[0] ^= std::byte{1};
  const std::uint32_t actual = crc32_of(bytes);
  CHECK(flipped_bit(expected, actual, 64).has_value());
  CHECK_FALSE(flipped_bit(expected, actual, 63).has_value());
  CHECK_FALSE(flipped_bit(expected, expected, 64).has_value());
  CHECK_FALSE(flipped_bit(expected, actual, 0).has_value());
  CHECK_FALSE(flipped_bit(expected, actual, kMaxFlipped + 1).has_value());
  // A flipped bit of the CRC itself.
  CHECK_FALSE(flipped_bit(expected, expected ^ 1u, 2).has_value());
}

TEST_CASE("two flipped bits hardly ever look like one") {
  std::mt19937_64 random(2);
  Bytes bytes(4096);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const std::uint32_t expected = crc32_of(bytes);
  int like_one = 0;
  for (int i = 0; i < 500; ++i) {
    Bytes other = bytes;
    const std::uint64_t first = random() % 4096;
    other[first] ^= std::byte{0x10};
    other[(first + 1 + random() % 4095) % 4096] ^= std::byte{0x02};
    like_one += flipped_bit(expected, crc32_of(other), 4096).has_value();
  }
  CHECK(like_one <= 1);  // 500 * 8 * 4096 / 2^32 are expected
}
