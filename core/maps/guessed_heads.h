// Head counts that the shapes allow, for models whose files do not give them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/maps/bound_map.h"

namespace shw {

// The head counts that the shapes allow, as values of --set ("groups=8", "heads=32",
// "head_dim=128"), the most usual head sizes first. Empty if the shapes allow none, or if no
// attention weights are joined.
std::vector<std::vector<std::string>> guessed_heads(std::span<const MapTensor> tensors);

}  // namespace shw
