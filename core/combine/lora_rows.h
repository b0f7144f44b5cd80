// Rows of a weight with a LoRA product added, computed in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/combine/tensor_rows.h"

namespace shw {

// What is added to one weight W, with r the rank:
//   W[i, j] + scale * sum_k B[i, k] A[k, j]     A is [r, in], B [out, r], W [out, in]
//   W[i, j] + scale * sum_k A[k, i] B[j, k]     where W is [in, out], or an embedding
// A convolution is the first, its last dims taken as one. DoRA then divides each row of an [out,
// in] weight by its length and multiplies it with its magnitude. Source of the formulas: PEFT,
// tuners/lora/layer.py and variants.py.
struct LoraProduct {
  ReadableTensor weight, a, b;
  std::optional<ReadableTensor> magnitude;
  double scale = 1;
  bool is_transposed = false;  // the second formula
};

// The sums of rows [first, first + count), row-major.
Result<std::vector<float>> lora_rows(const LoraProduct& product, std::int64_t first,
                                     std::int64_t count);

}  // namespace shw
