// The axis along which Megatron's tensor-parallel ranks split a parameter. Files do not record it;
// it follows from the layer, known by name (megatron/core/tensor_parallel/layers.py:
// ColumnParallelLinear and VocabParallelEmbedding split axis 0, RowParallelLinear axis 1; the bias
// of a row-parallel layer and all norms are equal on every rank). GPT-NeoX has the same layers; its
// head is final_linear.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/formats/tensor_split.h"

namespace shw {

// `is_gated`: the first MLP matrix combines gate and up; nullopt if unknown.
TensorSplit tensor_split(std::string_view name, std::optional<bool> is_gated);

// Position of the expert's number within its rank: of the digits in
// "layers.3.mlp.experts.local_experts.2.linear_fc1.weight", or the last ones in the name of a
// grouped weight ("linear_fc1.weight2").
struct LocalExpert {
  std::size_t at = 0, length = 0;
  std::uint32_t number = 0;
};
std::optional<LocalExpert> local_expert(std::string_view name);

}  // namespace shw
