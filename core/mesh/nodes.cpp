#include "core/mesh/nodes.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>

#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::size_t kMaxNodes = 6;  // in a text

// True if the ranks are whole groups of `size` ranks that start at a multiple of it.
bool are_whole_nodes(std::span<const std::uint32_t> ranks, std::uint32_t size) {
  if (ranks.empty() || ranks.size() % size != 0) return false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t first = ranks[i - i % size];
    if (first % size != 0 || ranks[i] != first + i % size) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> rank_runs(std::span<const std::uint32_t> ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    runs.push_back(end - i < 3 ? fmt::format("{}", ranks[i])
                               : fmt::format("{} to {}", ranks[i], ranks[end - 1]));
    i = end - i < 3 ? i + 1 : end;
  }
  return runs;
}

std::string nodes_text(std::span<const std::uint32_t> ranks, std::uint32_t all,
                       std::uint32_t ranks_per_node) {
  if (ranks.size() >= all) return {};
  constexpr std::array kUsual{16u, 8u, 4u};
  const std::span<const std::uint32_t> sizes =
      ranks_per_node != 0 ? std::span<const std::uint32_t>(&ranks_per_node, 1) : kUsual;
  for (const std::uint32_t size : sizes) {
    if (all % size != 0 || all == size || !are_whole_nodes(ranks, size)) continue;
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < ranks.size(); i += size)
      nodes.push_back(fmt::format("{}", ranks[i] / size));
    return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes",
                       short_list_text(nodes, kMaxNodes)) +
           (ranks_per_node != 0 ? "" : fmt::format(", if a node has {} ranks", size));
  }
  return {};
}

}  // namespace shw
