// What is known of a tensor that no operation of a map makes: how it differs from one of the other
// side that lies where its counterpart would.
#pragma once

#include <string>

#include "core/learn/learn_side.h"

namespace shw {

// In words; empty where nothing is known. `candidates`: tensors of the other side that are not
// explained. Small tensors alone are read.
std::string nearly_equal_words(const LearnSide& side, std::size_t tensor, const LearnSide& other,
                               const std::vector<std::size_t>& candidates);

}  // namespace shw
