// Tensors that loaders keep in 32 bits whatever the dtype of the model is.
#pragma once

#include <string_view>

namespace shw {

// The bias that a router adds to scores before it chooses: in fewer bits experts with close scores
// change places.
bool is_router_bias(std::string_view fqn);

// That bias, the frequencies of rotary embeddings, and the decay and step of state space models:
// what transformers lists in _keep_in_fp32_modules(_strict) of several models.
bool stays_in_float32(std::string_view fqn);

}  // namespace shw
