// One of the two matrices of a LoRA adapter: an adapter is their product.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void find_half_adapters(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
