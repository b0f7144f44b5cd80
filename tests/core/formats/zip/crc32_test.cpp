#include "core/formats/zip/crc32.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace shw;

namespace {

// Computes the CRC bit by bit from the polynomial.
std::uint32_t crc32_slow(BytesView bytes, std::uint32_t crc = 0) {
  crc = ~crc;
  for (std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("CRC-32 of every length and alignment equals the bit-by-bit one") {
  std::mt19937 random(7);
  Bytes bytes(600);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t length = 0; length < 400; ++length) {
    BytesView part = BytesView(bytes).subspan(length % 17, length);
    CHECK(crc32_of(part) == crc32_slow(part));
    CHECK(crc32_of(part, 0x12345678) == crc32_slow(part, 0x12345678));
  }
}

TEST_CASE("CRC-32 of long runs equals the bit-by-bit one, wherever they begin and end") {
  std::mt19937 random(13);
  Bytes bytes(10'000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (int round = 0; round < 400; ++round) {
    const std::size_t begin = random() % 130;
    BytesView part = BytesView(bytes).subspan(begin, 900 + random() % 1000);
    if (round % 50 == 0) part = BytesView(bytes).subspan(begin);
    const auto before = static_cast<std::uint32_t>(random());
    CHECK(crc32_of(part, before) == crc32_slow(part, before));
  }
  CHECK(crc32_of(Bytes(4096)) == crc32_slow(Bytes(4096)));
}

TEST_CASE("a hole gives the CRC that its zeros would") {
  Bytes head(77, std::byte{3});
  for (std::size_t zeros : {0, 1, 63, 4096, 100'001}) {
    Bytes all = head;
    all.resize(head.size() + zeros);
    CHECK(crc32_of_zeros(crc32_of(head), zeros) == crc32_slow(all));
  }
  CHECK(crc32_of_zeros(0, std::uint64_t{1} << 40) ==
        crc32_of_zeros(crc32_of_zeros(0, (std::uint64_t{1} << 40) - 5), 5));
}

TEST_CASE("CRCs of two parts join to the CRC of the whole") {
  Bytes bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31);
  BytesView all = bytes;
  CHECK(combined_crc32(crc32_of(all.first(300)), crc32_of(all.subspan(300)), 700) == crc32_of(all));
}

TEST_CASE("runs that come in any order change the CRC of zeros into that of all") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Bytes all(1 + random() % 3000);
    CrcChange change(all.size());
    // Rows of a block, blocks of a row and runs of other lengths, some of them skipped.
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    const std::size_t run = 1 + random() % 90;
    for (std::size_t at = random() % 30; at < all.size(); at += run + random() % 2 * 40)
      runs.emplace_back(at, std::min(run, all.size() - at));
    if (round % 3 == 0) std::shuffle(runs.begin(), runs.end(), random);
    if (round % 3 == 1)
      std::stable_partition(runs.begin(), runs.end(),
                            [&](const auto& one) { return one.first % 200 < 100; });
    for (auto [at, length] : runs) {
      for (std::size_t i = at; i < at + length; ++i) all[i] = static_cast<std::byte>(random());
      change.add(at, BytesView(all).subspan(at, length));
    }
    CHECK((crc32_of_zeros(0, all.size()) ^ change.value()) == crc32_slow(all));
  }
}
