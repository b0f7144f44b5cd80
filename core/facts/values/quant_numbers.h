// Reads boxes of tensors as numbers for computations: decoded weights, sums.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"
#include "core/tensor/shape.h"

namespace shw {

// Elements of a box, row-major, as stored or cast to float32. kDamaged if they cannot all be read
// or exceed 4 GiB.
Result<Bytes> read_box_bytes(const Checkpoint& checkpoint, TensorId tensor, const Box& box);
Result<std::vector<float>> read_box_floats(const Checkpoint& checkpoint, TensorId tensor,
                                           const Box& box);

// The box of rows [first, first + count) of the first dimension; the whole box of a 0-d tensor.
Box rows_box(ExtentsView shape, std::int64_t first, std::int64_t count);

// Number `index` in a sequence of 32-bit words with `bits` per number, lowest bits first.
inline std::uint32_t unpack_number(const std::byte* words, std::size_t index, unsigned bits) {
  const std::size_t bit = index * bits;
  std::uint32_t word = 0;
  std::memcpy(&word, words + bit / 32 * 4, sizeof word);
  return word >> (bit % 32) & ((std::uint32_t{1} << bits) - 1);
}

// The 16 numbers of FP4 (E2M1).
inline constexpr float kFp4Numbers[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                          -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

}  // namespace shw
