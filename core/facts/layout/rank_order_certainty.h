// Explains why the positions of ranks on a mesh are unknown.
#pragma once

#include <string>

#include "core/facts/check_input.h"

namespace shw {

// True if the spec's mesh names every rank but the tensors contradict the order of its axes.
bool is_rank_order_uncertain(const CheckInput& input, const Mesh& mesh);
std::string unknown_rank_reason(const CheckInput& input, const Mesh& mesh);

}  // namespace shw
