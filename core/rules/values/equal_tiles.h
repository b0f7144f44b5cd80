// Tiles of one tensor that hold the same bytes: one rank's part at the place of another's as well.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// Findings of duplicate-content. A warning where two ranks share their tiles of two tensors or
// more, and these are no half of the tensor's; else only said: a table may repeat itself.
Status report_equal_tiles(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
