// States of one rank in an optimizer's file beside whole weights.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

void find_adjacent_parts(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
