// Matrices of one module that hold the same: gate saved under up's name as well.
#pragma once

#include <vector>

#include "core/facts/facts.h"

namespace shw {

// At depth data. Those of few values say nothing.
Status report_equal_sisters(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
