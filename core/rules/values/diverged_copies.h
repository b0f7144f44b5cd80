// Copies of one tile that several ranks wrote into one checkpoint, and that are not the same.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Loading takes one of them and says nothing of the others; where each rank loads by an index of
// its own, each gets its own.
void find_diverged_copies(const Facts& facts, std::vector<Finding>& findings);

}  // namespace shw
