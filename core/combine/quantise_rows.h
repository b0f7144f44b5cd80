// Quantises rows of a weight to fewer bits, with scales.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"

namespace shw {

// Rows that are whole blocks: elements in float8_e4m3fn, and one scale per block (number = element
// * scale). A block of zeros has the scale 1.
struct Fp8Rows {
  Bytes elements;
  std::vector<float> scales;
};
Result<Fp8Rows> quantise_fp8(std::span<const float> numbers, std::size_t columns,
                             std::size_t block_rows, std::size_t block_columns, bool powers_of_two);

// One matrix [inputs, outputs], with inputs a multiple of 32: bytes [outputs, inputs / 2] of two
// numbers each, low half first, and scales [outputs, inputs / 32] as exponents of two plus 127.
struct Fp4Rows {
  Bytes blocks, scales;
};
Fp4Rows quantise_fp4(std::span<const float> numbers, std::size_t inputs, std::size_t outputs);

}  // namespace shw
