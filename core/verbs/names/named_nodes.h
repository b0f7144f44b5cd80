// Names the nodes of a cluster whose files are missing. A checkpoint records no nodes, so the user
// gives the number of ranks on each.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw::verbs {

// Adds "They are all files of node 1." to findings about missing files of whole nodes.
void add_node_names(const Checkpoint& checkpoint, std::uint32_t ranks_per_node,
                    std::vector<Finding>& findings);

}  // namespace shw::verbs
