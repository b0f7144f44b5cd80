// Weights that are one rank's part of the sizes in config.json.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

void find_parts_by_config(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
