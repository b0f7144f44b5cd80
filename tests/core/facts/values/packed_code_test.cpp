// Codes in words, against a string of single bits.
#include "core/facts/values/packed_code.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/base/bytes.h"

using namespace shw;

namespace {

constexpr std::size_t kCodes = 128;

std::vector<std::uint32_t> random_codes(unsigned bits) {
  std::mt19937 random(bits);
  std::vector<std::uint32_t> codes(kCodes);
  for (std::uint32_t& code : codes)
    code = static_cast<std::uint32_t>(random()) & ((1U << bits) - 1);
  return codes;
}

// The place of each bit of a code among all bits of the words, lowest first.
std::size_t place_of_bit(const CodeWords& form, std::size_t index, unsigned bit) {
  if (!form.has_planes) return index * form.bits + bit;
  // 32 codes have form.bits words: those of bits 0 to 3 first where there are 4, then of 2, then 1.
  std::size_t place = index / 32 * 32 * form.bits;
  unsigned first = 0;
  for (const unsigned width : {8U, 4U, 2U, 1U}) {
    if ((form.bits & width) == 0) continue;
    if (bit < first + width) return place + index % 32 * width + (bit - first);
    first += width;
    place += 32 * std::size_t{width};
  }
  return 0;
}

Bytes packed_words(const CodeWords& form, const std::vector<std::uint32_t>& codes,
                   std::size_t stride) {
  const std::size_t word_bytes = form.word_bits / 8;
  Bytes words(codes.size() * form.bits / 8 * stride, std::byte{0xA5});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    for (unsigned bit = 0; bit < form.bits; ++bit) {
      const std::size_t place = place_of_bit(form, i, bit), byte = place / 8;
      std::byte& at = words[byte / word_bytes * word_bytes * stride + byte % word_bytes];
      const auto mask = static_cast<std::byte>(1U << (place % 8));
      at = (codes[i] >> bit & 1) != 0 ? at | mask : at & ~mask;
    }
  }
  return words;
}

void must_unpack(const CodeWords& form) {
  CAPTURE(form.bits);
  CAPTURE(form.word_bits);
  CAPTURE(form.has_planes);
  const auto codes = random_codes(form.bits);
  for (const std::size_t stride : {1, 3}) {
    const Bytes words = packed_words(form, codes, stride);
    for (std::size_t i = 0; i < codes.size(); ++i)
      REQUIRE(packed_code(form, words.data(), stride, i) == codes[i]);
  }
}

}  // namespace

TEST_CASE("packed codes: codes of 1 to 8 bits in a row of words") {
  for (unsigned bits = 1; bits <= 8; ++bits) must_unpack({bits, 32, false});
}

TEST_CASE("packed codes: words of other sizes, which codes do not cross") {
  for (const unsigned word_bits : {8U, 16U, 64U})
    for (const unsigned bits : {2U, 4U, 8U}) must_unpack({bits, word_bits, false});
}

TEST_CASE("packed codes: planes of 4, 2 and 1 bits") {
  for (unsigned bits = 2; bits <= 8; ++bits) must_unpack({bits, 32, true});
}
