// Describes a tensor that no map operation makes, by its difference to the likely counterpart on
// the other side.
#pragma once

#include <string>

#include "core/learn/learn_side.h"

namespace shw {

// Text; empty if nothing is known. `candidates` are unexplained tensors of the other side. Reads
// only small tensors.
std::string nearly_equal_text(const LearnSide& side, std::size_t tensor, const LearnSide& other,
                              const std::vector<std::size_t>& candidates);

}  // namespace shw
