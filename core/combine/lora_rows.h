// Rows of a weight with a LoRA product added, computed in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/combine/tensor_rows.h"

namespace shw {

// The LoRA product that is added to a weight W, with rank r:
//   W[i, j] + scale * sum_k B[i, k] A[k, j]     A is [r, in], B [out, r], W [out, in]
//   W[i, j] + scale * sum_k A[k, i] B[j, k]     for W of shape [in, out], and for embeddings
// A convolution uses the first formula, with its last dims joined. DoRA then divides each row of an
// [out, in] weight by its length and multiplies it by its magnitude. Source: PEFT,
// tuners/lora/layer.py and variants.py.
struct LoraProduct {
  ReadableTensor weight, a, b;
  std::optional<ReadableTensor> magnitude;
  double scale = 1;
  bool is_transposed = false;  // uses the second formula
};

// Rows [first, first + count) of the sum, row-major.
Result<std::vector<float>> lora_rows(const LoraProduct& product, std::int64_t first,
                                     std::int64_t count);

}  // namespace shw
