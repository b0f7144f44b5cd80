// Norm weights with 1 added or taken off. Gemma and its kind multiply by 1 + weight and store the
// weight (Megatron: apply_layernorm_1p, layernorm_zero_centered_gamma); other programs store the
// factor itself.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// "model.layers.0.input_layernorm.weight", "...linear_qkv.layer_norm_weight": a name whose last
// parts say that it is the weight of a norm.
bool is_norm_weight(std::string_view fqn);

// A norm weight, or the float32 master of one. Moments stay: the gradient of w is that of 1 + w.
bool is_shifted_with_norms(std::string_view fqn);

// Every floating norm weight and its master plus `shift`, in float32, rounded once to its dtype.
// kUnsupported where there is none.
Result<std::shared_ptr<const Checkpoint>> shifted_norms(
    std::shared_ptr<const Checkpoint> checkpoint, float shift, Progress* progress);

}  // namespace shw
