// Matrices of one module with equal contents, such as gate saved again as up.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// Needs depth data. Ignores tensors with few distinct values.
Status report_equal_siblings(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
