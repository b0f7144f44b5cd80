// Copies of one chunk, written by several ranks, that differ.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Loading uses one copy and ignores the others; with an index per rank each rank loads its
// own.
void find_diverged_copies(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
