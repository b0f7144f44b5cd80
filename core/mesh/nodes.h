// The nodes of a cluster that ranks ran on. A checkpoint does not record them: ranks are numbered
// node by node, with the same number on each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shw {

// Runs of consecutive ranks, which are sorted: "3", "8 to 15".
std::vector<std::string> rank_runs(std::span<const std::uint32_t> ranks);
// "node 1" or "nodes 1 and 2": the nodes of these sorted ranks, of `all` ranks. If `ranks_per_node`
// is 0, usual numbers are tried and named: "node 1, if a node has 8 ranks". Empty if `ranks` are
// all ranks, or do not fill whole nodes.
std::string nodes_text(std::span<const std::uint32_t> ranks, std::uint32_t all,
                       std::uint32_t ranks_per_node);

}  // namespace shw
