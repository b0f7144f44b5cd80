#include "core/mesh/nodes.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace shw;

namespace {

std::vector<std::uint32_t> ranks_from(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace

TEST_CASE("nodes: ranks that fill nodes are named as nodes, by the number given or usual ones") {
  CHECK(nodes_text(ranks_from(8, 8), 64, 0) == "node 1, if a node has 8 ranks");
  CHECK(nodes_text(ranks_from(16, 16), 64, 0) == "node 1, if a node has 16 ranks");
  CHECK(nodes_text(ranks_from(16, 16), 64, 8) == "nodes 2 and 3");
  CHECK(nodes_text(ranks_from(6, 6), 18, 6) == "node 1");
  CHECK(nodes_text(ranks_from(6, 6), 18, 0).empty());   // 6 is not a usual number
  CHECK(nodes_text(ranks_from(8, 8), 64, 16).empty());  // half of a node
  CHECK(nodes_text(ranks_from(9, 8), 64, 8).empty());
  CHECK(nodes_text(ranks_from(0, 64), 64, 8).empty());  // all of them
  CHECK(nodes_text({}, 64, 8).empty());
}

TEST_CASE("nodes: three consecutive ranks and more are a run") {
  const std::vector<std::uint32_t> ranks{1, 2, 3, 9, 20, 21};
  CHECK(rank_runs(ranks) == std::vector<std::string>{"1 to 3", "9", "20", "21"});
}
