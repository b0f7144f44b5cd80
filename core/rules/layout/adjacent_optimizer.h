// Optimizer files next to complete weights that have the states of one rank only.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

void find_adjacent_parts(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
