// Decodes blocks of 256 elements. A byte holds the codes of two or four elements that are not
// adjacent.
#include "core/formats/gguf/gguf_blocks.h"
#include "core/formats/gguf/gguf_numbers.h"

namespace shw {
namespace {

constexpr unsigned kElements256 = 256;

struct ScaleAndLeast {
  float scale, least;
};
// Unpacks scale and minimum of one of eight parts: two 6-bit numbers per part, in twelve bytes.
ScaleAndLeast unpack_scale_and_least(const std::byte* packed, unsigned part, float scale,
                                     float least) {
  unsigned d = 0, m = 0;
  if (part < 4) {
    d = gguf_byte(packed + part) & 63;
    m = gguf_byte(packed + part + 4) & 63;
  } else {
    d = (gguf_byte(packed + part + 4) & 0xF) | gguf_byte(packed + part - 4) >> 6 << 4;
    m = gguf_byte(packed + part + 4) >> 4 | gguf_byte(packed + part) >> 6 << 4;
  }
  return {scale * static_cast<float>(d), least * static_cast<float>(m)};
}

// 4-bit code: 64 elements per 32 bytes, the first 32 in the low halves.
unsigned nibble_of_64(const std::byte* codes, unsigned i) {
  const unsigned both = gguf_byte(codes + i / 64 * 32 + i % 32);
  return i % 64 < 32 ? both & 0xF : both >> 4;
}
// 2-bit code: 128 elements per 32 bytes, in four groups of 32.
unsigned two_bit_code_of_128(const std::byte* codes, unsigned i) {
  return gguf_byte(codes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

// Unpacks one of 16 6-bit scales in twelve bytes; the stored value is 32 greater.
int scale_of_q3(const std::byte* packed, unsigned part) {
  const unsigned both = gguf_byte(packed + part % 8);
  const unsigned low = part < 8 ? both & 0xF : both >> 4;
  const unsigned high = gguf_byte(packed + 8 + part % 4) >> (part / 4 * 2) & 3;
  return static_cast<int>(low | high << 4) - 32;
}

}  // namespace

// Layout: 16 scales with minimums, codes, scale, minimum.
void decode_gguf_q2_k(const std::byte* block, float* elements) {
  const float scale = gguf_half(block + 80), least = gguf_half(block + 82);
  for (unsigned i = 0; i < kElements256; ++i) {
    const unsigned both = gguf_byte(block + i / 16);
    const float product = scale * static_cast<float>(both & 0xF) *
                          static_cast<float>(two_bit_code_of_128(block + 16, i));
    elements[i] = product - least * static_cast<float>(both >> 4);
  }
}

// Layout: third bits, codes, scales, scale.
void decode_gguf_q3_k(const std::byte* block, float* elements) {
  const float scale = gguf_half(block + 108);
  for (unsigned i = 0; i < kElements256; ++i) {
    const unsigned has_third = gguf_byte(block + i % 32) >> (i / 32) & 1;
    const int code =
        static_cast<int>(two_bit_code_of_128(block + 32, i)) - (has_third != 0 ? 0 : 4);
    elements[i] =
        scale * static_cast<float>(scale_of_q3(block + 96, i / 16)) * static_cast<float>(code);
  }
}

// Layout: scale, minimum, scales and minimums of the parts, codes.
void decode_gguf_q4_k(const std::byte* block, float* elements) {
  const float scale = gguf_half(block), least = gguf_half(block + 2);
  for (unsigned i = 0; i < kElements256; ++i) {
    const ScaleAndLeast part = unpack_scale_and_least(block + 4, i / 32, scale, least);
    const float product = part.scale * static_cast<float>(nibble_of_64(block + 16, i));
    elements[i] = product - part.least;
  }
}

// Layout: as Q4_K, with the fifth bits before the codes.
void decode_gguf_q5_k(const std::byte* block, float* elements) {
  const float scale = gguf_half(block), least = gguf_half(block + 2);
  for (unsigned i = 0; i < kElements256; ++i) {
    const ScaleAndLeast part = unpack_scale_and_least(block + 4, i / 32, scale, least);
    const unsigned fifth = gguf_byte(block + 16 + i % 32) >> (i / 32) & 1;
    const float product = part.scale * static_cast<float>(nibble_of_64(block + 48, i) | fifth << 4);
    elements[i] = product - part.least;
  }
}

// Layout: low four bits, high two bits, 16 scales, scale.
void decode_gguf_q6_k(const std::byte* block, float* elements) {
  const float scale = gguf_half(block + 208);
  for (unsigned i = 0; i < kElements256; ++i) {
    const unsigned both = gguf_byte(block + i / 128 * 64 + i % 64);
    const unsigned low = i % 128 < 64 ? both & 0xF : both >> 4;
    const int code = static_cast<int>(low | two_bit_code_of_128(block + 128, i) << 4) - 32;
    elements[i] =
        scale * static_cast<float>(gguf_signed(block + 192 + i / 16)) * static_cast<float>(code);
  }
}

// Layout: scale as float32, codes, sums of 16 codes.
void decode_gguf_q8_k(const std::byte* block, float* elements) {
  float scale = 0;
  std::memcpy(&scale, block, sizeof scale);
  for (unsigned i = 0; i < kElements256; ++i)
    elements[i] = scale * static_cast<float>(gguf_signed(block + 4 + i));
}

// Layout: scale, high bits of the scales, low bits of the scales, codes.
void decode_gguf_iq4_xs(const std::byte* block, float* elements) {
  const float scale = gguf_half(block);
  const unsigned high = gguf_u16(block + 2);
  for (unsigned i = 0; i < kElements256; ++i) {
    const unsigned part = i / 32;
    const unsigned low = gguf_byte(block + 4 + part / 2) >> (part % 2 * 4) & 0xF;
    const int own = static_cast<int>(low | (high >> (2 * part) & 3) << 4) - 32;
    const unsigned both = gguf_byte(block + 8 + part * 16 + i % 16);
    const unsigned code = i % 32 < 16 ? both & 0xF : both >> 4;
    elements[i] = scale * static_cast<float>(own) * static_cast<float>(kGgufNonLinear[code]);
  }
}

// Layout: base-3 codes, scale. A byte holds five codes as a fraction in base 3: 160 elements in 32
// bytes, then 80 in 16; the last 16 elements are four per byte.
void decode_gguf_tq1_0(const std::byte* block, float* elements) {
  constexpr unsigned kPowers[] = {1, 3, 9, 27, 81};
  const float scale = gguf_half(block + 52);
  for (unsigned i = 0; i < kElements256; ++i) {
    const unsigned begin = i < 160 ? 0 : i < 240 ? 160 : 240;
    const unsigned bytes = i < 160 ? 32 : i < 240 ? 16 : 4;
    const unsigned first = i < 160 ? 0 : i < 240 ? 32 : 48;
    const unsigned at = i - begin;
    const unsigned digits = gguf_byte(block + first + at % bytes) * kPowers[at / bytes] & 0xFF;
    elements[i] = scale * static_cast<float>(static_cast<int>(digits * 3 >> 8) - 1);
  }
}

// Layout: 2-bit codes, scale.
void decode_gguf_tq2_0(const std::byte* block, float* elements) {
  const float scale = gguf_half(block + 64);
  for (unsigned i = 0; i < kElements256; ++i)
    elements[i] = scale * static_cast<float>(static_cast<int>(two_bit_code_of_128(block, i)) - 1);
}

}  // namespace shw
