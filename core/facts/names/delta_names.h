// Tensor names of a delta, the changes between two checkpoints (core/combine/delta.h).
#pragma once

#include <string_view>

namespace shw {

inline constexpr std::string_view kDeltaIndices = ".delta_indices";
inline constexpr std::string_view kDeltaValues = ".delta_values";
inline constexpr std::string_view kDeltaWhole = ".delta_whole";

// True for the index and value tensors of a delta: their length is the number of changed elements,
// not a size of the model.
inline bool is_delta_tensor(std::string_view fqn) {
  return fqn.ends_with(kDeltaIndices) || fqn.ends_with(kDeltaValues);
}

}  // namespace shw
