// Decodes blocks of 64 and 128 elements.
#include <cmath>

#include "core/formats/gguf/gguf_blocks.h"
#include "core/formats/gguf/gguf_numbers.h"

namespace shw {
namespace {

constexpr unsigned kElements64 = 64, kElements128 = 128;
constexpr unsigned kFp4Group = 16, kFp4Groups = kElements64 / kFp4Group;

// Half of an unsigned E4M3 scale, because kGgufFp4Doubled is doubled. Like ggml, ignores the sign
// bit and reads 0x7F as 0.
float half_of_e4m3(unsigned code) {
  if (code == 0 || code == 0x7F) return 0;
  const int exponent = static_cast<int>(code >> 3 & 0xF);
  const float fraction = static_cast<float>(code & 7);
  return exponent == 0 ? std::ldexp(fraction, -10) : std::ldexp(1 + fraction / 8, exponent - 8);
}

}  // namespace

// Layout: a scale per 16 elements, then codes; of 16 elements the first eight are in the low
// halves.
void decode_gguf_nvfp4(const std::byte* block, float* elements) {
  for (unsigned i = 0; i < kElements64; ++i) {
    const unsigned group = i / kFp4Group;
    const unsigned both = gguf_byte(block + kFp4Groups + group * kFp4Group / 2 + i % 8);
    const unsigned code = i % kFp4Group < 8 ? both & 0xF : both >> 4;
    elements[i] =
        half_of_e4m3(gguf_byte(block + group)) * static_cast<float>(kGgufFp4Doubled[code]);
  }
}

// Layout: scale, signs.
void decode_gguf_q1_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements128; ++i)
    elements[i] = gguf_bit(block + 2, i) != 0 ? scale : -scale;
}

// Layout: scale, 2-bit codes.
void decode_gguf_q2_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  for (unsigned i = 0; i < kElements64; ++i) {
    const int code = static_cast<int>(gguf_byte(block + 2 + i / 4) >> (i % 4 * 2) & 3) - 1;
    elements[i] = static_cast<float>(code) * scale;
  }
}

}  // namespace shw
