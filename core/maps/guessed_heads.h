// Head counts that the shapes allow, for models whose files do not give them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/maps/bound_map.h"

namespace shw {

// What can be said of the heads, as --set says it ("groups=8", "heads=32", "head_dim=128"): the
// usual sizes of a head first. Empty where the shapes allow none, or no attention is joined.
std::vector<std::vector<std::string>> guessed_heads(std::span<const MapTensor> tensors);

}  // namespace shw
