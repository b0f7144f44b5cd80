// Chunks of one tensor with equal bytes: one rank's part saved in another's place.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// Reports as duplicate-content: a warning if two ranks share chunks of two or more tensors that are
// not halves; else an info, because a table may repeat itself.
Status report_equal_tiles(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
