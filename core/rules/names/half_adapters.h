// Adapters with only one of the two LoRA matrices, whose product they need.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
