// Tensors of a delta: what makes one checkpoint of another (core/combine/delta.h).
#pragma once

#include <string_view>

namespace shw {

inline constexpr std::string_view kDeltaIndices = ".delta_indices";
inline constexpr std::string_view kDeltaValues = ".delta_values";
inline constexpr std::string_view kDeltaWhole = ".delta_whole";

// True where the shape says how much changed, and nothing of the model.
inline bool lists_changes(std::string_view fqn) {
  return fqn.ends_with(kDeltaIndices) || fqn.ends_with(kDeltaValues);
}

}  // namespace shw
