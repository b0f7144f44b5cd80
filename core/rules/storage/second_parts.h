// A second set of numbered parts of the same model next to the parts that were opened.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

void find_second_parts(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
