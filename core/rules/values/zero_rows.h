// Reports matrices with a run of zero rows, where the same weight of other layers has none.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void report_zero_rows(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
