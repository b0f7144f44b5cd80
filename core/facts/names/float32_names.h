// Tensors that loaders keep in float32 whatever the model's dtype is.
#pragma once

#include <string_view>

namespace shw {

// True for the bias that a router adds to scores before choosing experts: with lower precision,
// experts with close scores may change their order.
bool is_router_bias(std::string_view fqn);

// True for a router bias, frequencies of rotary embeddings, and decay and step of state space
// models: the tensors in _keep_in_fp32_modules(_strict) of several transformers models.
bool is_kept_in_float32(std::string_view fqn);

}  // namespace shw
