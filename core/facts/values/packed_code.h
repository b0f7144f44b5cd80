// Codes of 2 to 8 bits that are packed in words, lowest bits first.
//
//   stream  = codes that follow each other, across words where their bits do not divide a word's
//   planes  = blocks of 32 codes, of which each part of a code's bits (4, 2 or 1, lowest first) has
//             as many words as it has bits (GPTQModel's gptq_p)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shw {

struct CodeWords {
  unsigned bits = 4;
  unsigned word_bits = 32;  // 8, 16, 32 or 64; codes that cross words, and planes, have 32
  bool has_planes = false;
};
inline constexpr std::int64_t kCodesOfBlock = 32;

inline std::uint64_t code_word(const CodeWords& form, const std::byte* words, std::size_t at) {
  std::uint32_t usual = 0;
  std::uint64_t other = 0;
  if (form.word_bits == 32)
    std::memcpy(&usual, words + at * sizeof usual, sizeof usual);
  else
    std::memcpy(&other, words + at * (form.word_bits / 8), form.word_bits / 8);
  return form.word_bits == 32 ? usual : other;
}

// Code `index` of a sequence whose word i is `stride` words behind word i - 1.
inline std::uint32_t packed_code(const CodeWords& form, const std::byte* words, std::size_t stride,
                                 std::size_t index) {
  const auto lowest = [](std::uint64_t word, unsigned bits) {
    return static_cast<std::uint32_t>(word) & ((1U << bits) - 1);
  };
  if (!form.has_planes) {
    const std::size_t bit = index * form.bits;
    const std::size_t at = bit >> std::countr_zero(form.word_bits);
    const auto skipped = static_cast<unsigned>(bit & (form.word_bits - 1));
    std::uint64_t both = code_word(form, words, at * stride) >> skipped;
    if (skipped + form.bits > form.word_bits)
      both |= code_word(form, words, (at + 1) * stride) << (form.word_bits - skipped);
    return lowest(both, form.bits);
  }
  constexpr auto kBlock = static_cast<std::size_t>(kCodesOfBlock);
  const std::size_t first_word = index / kBlock * form.bits;
  std::uint32_t code = 0;
  for (unsigned done = 0; done < form.bits;) {
    const unsigned width = std::bit_floor(form.bits - done);
    const std::size_t bit = index % kBlock * width;
    const std::size_t at = first_word + done + bit / kBlock;
    code |= lowest(code_word(form, words, at * stride) >> (bit % kBlock), width) << done;
    done += width;
  }
  return code;
}

}  // namespace shw
