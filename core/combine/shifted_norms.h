// Adds or subtracts 1 from norm weights. Gemma and similar models multiply by 1 + weight and store
// the weight (Megatron: apply_layernorm_1p, layernorm_zero_centered_gamma); other programs store
// the factor itself.
#pragma once

#include <memory>
#include <string_view>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// True if the last parts of a name mark the weight of a norm:
// "model.layers.0.input_layernorm.weight", "...linear_qkv.layer_norm_weight".
bool is_norm_weight(std::string_view fqn);

// True for a norm weight and its float32 master, which shift_norm_weights() changes. Adam moments
// stay: the gradient by w equals the gradient by 1 + w.
bool is_norm_weight_or_master(std::string_view fqn);

// Adds `shift` to every floating-point norm weight and its master, in float32, rounded once to its
// dtype. kUnsupported if there is none.
Result<std::shared_ptr<const Checkpoint>> shift_norm_weights(
    std::shared_ptr<const Checkpoint> checkpoint, float shift, Progress* progress);

}  // namespace shw
