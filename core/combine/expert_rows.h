// Rows of stacked experts with a LoRA product added to each, computed in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/combine/tensor_rows.h"

namespace shw {

// PEFT stores the matrices of all experts in two tensors: row e * rank + k of A and column k *
// experts + e of B belong to expert e. Source: PEFT, tuners/lora/layer.py,
// ParamWrapper.get_delta_weight.
struct ExpertProduct {
  ReadableTensor weight;  // [experts, rows, columns], or [rows, columns] of one `expert`
  ReadableTensor a, b;    // [experts * rank, in], [out, rank * experts]
  std::int64_t experts = 1, rank = 0;
  std::optional<std::int64_t> expert = std::nullopt;
  std::int64_t first_row = 0;   // first row of the parameter that the weight holds
  bool is_input_first = false;  // the parameter is [experts, in, out] instead of [experts, out, in]
  double scale = 1;
};

// Rows [first, first + count) along the weight's first dimension, with the product added,
// row-major.
Result<std::vector<float>> expert_rows(const ExpertProduct& product, std::int64_t first,
                                       std::int64_t count);

}  // namespace shw
