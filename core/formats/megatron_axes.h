// Along which axis Megatron's tensor-parallel ranks hold a parameter. No file says it: it follows
// from the layer that the parameter is of, by its name (megatron/core/tensor_parallel/layers.py:
// ColumnParallelLinear and VocabParallelEmbedding cut axis 0, RowParallelLinear axis 1, a row's
// bias and all norms are the same on every rank). GPT-NeoX has the same layers, and its head is
// final_linear.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/formats/tensor_cut.h"

namespace shw {

// `is_gated`: whether the first matrix of an MLP is gate and up; nothing where args do not say.
TensorCut tensor_cut(std::string_view name, std::optional<bool> is_gated);

// "layers.3.mlp.experts.local_experts.2.linear_fc1.weight": the digits of the expert's own number
// among those of its rank. Of weights of grouped experts ("linear_fc1.weight2") the last ones.
struct LocalExpert {
  std::size_t at = 0, length = 0;
  std::uint32_t number = 0;
};
std::optional<LocalExpert> local_expert(std::string_view name);

}  // namespace shw
