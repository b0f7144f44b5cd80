// Averaged copies of the weights (EMA) of which one rank's shard was saved as the whole tensor.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

void find_copies_saved_local(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
