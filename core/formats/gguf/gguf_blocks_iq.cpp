// Decodes blocks of 256 elements whose codes are points of a grid (gguf_grids.h): eight elements
// per code, four of IQ3, with signs of their own.
#include "core/formats/gguf/gguf_blocks.h"
#include "core/formats/gguf/gguf_grids.h"
#include "core/formats/gguf/gguf_numbers.h"

namespace shw {
namespace {

constexpr unsigned kElementsIq = 256;

std::uint32_t gguf_u32(const std::byte* at) {
  return gguf_u16(at) | static_cast<std::uint32_t>(gguf_u16(at + 2)) << 16;
}

float number_of_grid2(std::uint16_t point, unsigned i) {
  constexpr float kNumbers[] = {8, 25, 43, 43};
  return kNumbers[point >> (2 * i) & 3];
}
float number_of_grid3xxs(std::uint16_t point, unsigned i) {
  constexpr float kNumbers[] = {4, 12, 20, 28, 36, 44, 52, 62};
  return kNumbers[point >> (3 * i) & 7];
}
float number_of_grid3s(std::uint16_t point, unsigned i) {
  return static_cast<float>(2 * (point >> (3 * i) & 7) + 1);
}

// Eight signs in seven bits: the number of minus signs is even.
unsigned signs_of_seven(unsigned bits) {
  unsigned odd = 0;
  for (unsigned bit = 0; bit < 7; ++bit) odd ^= bits >> bit & 1;
  return bits | odd << 7;
}
float with_sign(float number, unsigned signs, unsigned i) {
  return number * ((signs >> i & 1) != 0 ? -1.0F : 1.0F);
}

// A 4-bit number per part: the first in the low half of a byte.
unsigned half_byte(const std::byte* packed, unsigned part) {
  return gguf_byte(packed + part / 2) >> (part % 2 * 4) & 0xF;
}

float scale_of_iq2(float scale, unsigned own) {
  return scale * (0.5F + static_cast<float>(own)) * 0.25F;
}

// Eight elements of IQ1: the numbers -1, 0 and 1, moved by an eighth.
void decode_iq1_point(unsigned code, bool is_down, float scale, float* elements) {
  const std::uint16_t point = kGgufGrid1[code];
  const float moved = is_down ? -0.125F : 0.125F;
  for (unsigned i = 0; i < 8; ++i) {
    const int number = static_cast<int>(point >> (2 * i) & 3) - 1;
    elements[i] = scale * (static_cast<float>(number) + moved);
  }
}

}  // namespace

// Layout: scale, then of 32 elements four codes, four times seven signs and a scale of four bits.
void decode_gguf_iq2_xxs(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElementsIq; ++i) {
    const std::byte* part = block + 2 + i / 32 * 8;
    const std::uint32_t packed = gguf_u32(part + 4);
    const unsigned point = i % 32 / 8;
    const float number = scale_of_iq2(scale, packed >> 28) *
                         number_of_grid2(kGgufGrid2Xxs[gguf_byte(part + point)], i % 8);
    elements[i] = with_sign(number, signs_of_seven(packed >> (7 * point) & 127), i % 8);
  }
}

// Layout: scale, codes of nine bits with seven signs, a scale per 16 elements.
void decode_gguf_iq2_xs(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElementsIq; ++i) {
    const unsigned code = gguf_u16(block + 2 + i / 8 * 2);
    const float number = scale_of_iq2(scale, half_byte(block + 66, i / 16)) *
                         number_of_grid2(kGgufGrid2Xs[code & 511], i % 8);
    elements[i] = with_sign(number, signs_of_seven(code >> 9), i % 8);
  }
}

// Layout: scale, low eight bits of the codes, signs, high two bits, a scale per 16 elements.
void decode_gguf_iq2_s(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElementsIq; ++i) {
    const unsigned point = i / 8;
    const unsigned high = gguf_byte(block + 66 + point / 4) >> (point % 4 * 2) & 3;
    const unsigned code = gguf_byte(block + 2 + point) | high << 8;
    const float number = scale_of_iq2(scale, half_byte(block + 74, i / 16)) *
                         number_of_grid2(kGgufGrid2S[code], i % 8);
    elements[i] = with_sign(number, gguf_byte(block + 34 + point), i % 8);
  }
}

// Layout: scale, codes of four elements, then of 32 elements four times seven signs and a scale.
void decode_gguf_iq3_xxs(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElementsIq; ++i) {
    const std::uint32_t packed = gguf_u32(block + 66 + i / 32 * 4);
    const float own = scale * (0.5F + static_cast<float>(packed >> 28)) * 0.5F;
    const float number =
        own * number_of_grid3xxs(kGgufGrid3Xxs[gguf_byte(block + 2 + i / 4)], i % 4);
    elements[i] = with_sign(number, signs_of_seven(packed >> (7 * (i % 32 / 8)) & 127), i % 8);
  }
}

// Layout: scale, low eight bits of the codes of four elements, ninth bits, signs, a scale per 32.
void decode_gguf_iq3_s(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElementsIq; ++i) {
    const unsigned code = gguf_byte(block + 2 + i / 4) | gguf_bit(block + 66, i / 4) << 8;
    const unsigned own = half_byte(block + 106, i / 32);
    const float number =
        scale * static_cast<float>(1 + 2 * own) * number_of_grid3s(kGgufGrid3S[code], i % 4);
    elements[i] = with_sign(number, gguf_byte(block + 74 + i / 8), i % 8);
  }
}

// Layout: scale, low eight bits of the codes, then of 32 elements the high bits of four codes, a
// scale of three bits and the direction of the move.
void decode_gguf_iq1_s(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned point = 0; point < kElementsIq / 8; ++point) {
    const unsigned packed = gguf_u16(block + 34 + point / 4 * 2);
    const unsigned code = gguf_byte(block + 2 + point) | (packed >> (point % 4 * 3) & 7) << 8;
    const float own = scale * static_cast<float>(2 * (packed >> 12 & 7) + 1);
    decode_iq1_point(code, (packed & 0x8000) != 0, own, elements + point * 8);
  }
}

// Layout: low eight bits of the codes, high three bits with the direction of the move, then four
// words of four scales, of three bits per 16 elements, whose highest four bits are the block's
// scale.
void decode_gguf_iq1_m(const std::byte* block, float* elements) {
  const std::byte* scales = block + 48;
  unsigned half = 0;
  for (unsigned word = 0; word < 4; ++word) half |= gguf_u16(scales + 2 * word) >> 12 << (4 * word);
  const float scale = from_narrow<kFloat16Form>(half);
  for (unsigned point = 0; point < kElementsIq / 8; ++point) {
    const unsigned high = gguf_byte(block + 32 + point / 2) >> (point % 2 * 4) & 0xF;
    const unsigned part = point / 2;
    const unsigned own = gguf_u16(scales + part / 4 * 2) >> (part % 4 * 3) & 7;
    decode_iq1_point(gguf_byte(block + point) | (high & 7) << 8, (high & 8) != 0,
                     scale * static_cast<float>(2 * own + 1), elements + point * 8);
  }
}

}  // namespace shw
