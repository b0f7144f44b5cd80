// Rows of stacked experts with a LoRA product added to each, computed in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/combine/tensor_rows.h"

namespace shw {

// PEFT keeps the matrices of all experts in two: row e * rank + k of A and column k * experts + e
// of B are of expert e. Source: PEFT, tuners/lora/layer.py, ParamWrapper.get_delta_weight.
struct ExpertProduct {
  ReadableTensor weight;  // [experts, rows, columns], or [rows, columns] of `expert`
  ReadableTensor a, b;    // [experts * rank, in], [out, rank * experts]
  std::int64_t experts = 1, rank = 0;
  std::optional<std::int64_t> expert = std::nullopt;
  std::int64_t first_row = 0;   // of the parameter's rows, where those of the weight begin
  bool is_input_first = false;  // the parameter is [experts, in, out], and not [experts, out, in]
  double scale = 1;
};

// The sums of [first, first + count) along the weight's first dimension, row-major.
Result<std::vector<float>> expert_rows(const ExpertProduct& product, std::int64_t first,
                                       std::int64_t count);

}  // namespace shw
