// Finds the map between two checkpoints of the same weights.
#pragma once

#include <string>

#include "core/base/progress.h"
#include "core/learn/learn.h"

namespace shw::verbs {

// Learns from checkpoints of any readable formats. `out`: file for the map, written if something
// was found; may be empty.
Result<LearnedMap> learn(const std::string& a, const std::string& b, const std::string& out,
                         Progress* progress = nullptr);

}  // namespace shw::verbs
