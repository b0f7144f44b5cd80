// Decodes blocks of 32 elements with one scale: the low halves of the bytes are the first 16
// elements.
#include <bit>

#include "core/formats/gguf/gguf_blocks.h"
#include "core/formats/gguf/gguf_numbers.h"

namespace shw {
namespace {

constexpr unsigned kElements32 = 32, kHalfBlock = 16;

unsigned nibble(const std::byte* codes, unsigned i) {
  const unsigned both = gguf_byte(codes + i % kHalfBlock);
  return i < kHalfBlock ? both & 0xF : both >> 4;
}
// Adds the fifth bit of an element, from a mask of 32 bits.
unsigned five_bit_code(const std::byte* mask, const std::byte* codes, unsigned i) {
  return nibble(codes, i) | gguf_bit(mask, i) << 4;
}

// 2^(code - 128): half of the stored scale, because the table of numbers is doubled.
float half_e8m0_scale(unsigned code) {
  const std::uint32_t bits = code < 2 ? 0x00200000u << code : (code - 1) << 23;
  return std::bit_cast<float>(bits);
}

}  // namespace

void decode_gguf_q4_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements32; ++i)
    elements[i] = scale * static_cast<float>(static_cast<int>(nibble(block + 2, i)) - 8);
}

void decode_gguf_q4_1(const std::byte* block, float* elements) {
  const float scale = gguf_half(block), least = gguf_half(block + 2);
  for (unsigned i = 0; i < kElements32; ++i) {
    const float product = scale * static_cast<float>(nibble(block + 4, i));
    elements[i] = product + least;
  }
}

void decode_gguf_q5_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements32; ++i) {
    const int code = static_cast<int>(five_bit_code(block + 2, block + 6, i)) - 16;
    elements[i] = scale * static_cast<float>(code);
  }
}

void decode_gguf_q5_1(const std::byte* block, float* elements) {
  const float scale = gguf_half(block), least = gguf_half(block + 2);
  for (unsigned i = 0; i < kElements32; ++i) {
    const float product = scale * static_cast<float>(five_bit_code(block + 4, block + 8, i));
    elements[i] = product + least;
  }
}

void decode_gguf_q8_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements32; ++i)
    elements[i] = static_cast<float>(gguf_signed(block + 2 + i)) * scale;
}

// Layout: scale, sum of the codes times the scale, codes.
void decode_gguf_q8_1(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements32; ++i)
    elements[i] = static_cast<float>(gguf_signed(block + 4 + i)) * scale;
}

void decode_gguf_iq4_nl(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements32; ++i)
    elements[i] = scale * static_cast<float>(kGgufNonLinear[nibble(block + 2, i)]);
}

void decode_gguf_mxfp4(const std::byte* block, float* elements) {
  const float scale = half_e8m0_scale(gguf_byte(block));
  for (unsigned i = 0; i < kElements32; ++i)
    elements[i] = scale * static_cast<float>(kGgufFp4Doubled[nibble(block + 1, i)]);
}

}  // namespace shw
