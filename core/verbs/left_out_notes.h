// Says what a conversion through a map leaves out: one line per kind of optimizer state and reason,
// with its count and the pattern of its names.
#pragma once

#include <string>
#include <vector>

#include "core/maps/choose_map.h"

namespace shw::verbs {

void add_left_out_notes(const MappedSteps& mapped, std::vector<std::string>& notes);

}  // namespace shw::verbs
