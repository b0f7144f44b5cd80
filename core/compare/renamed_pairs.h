// Pairs names that only one checkpoint has with renamed tensors of the other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/tile_pairs.h"

namespace shw {

struct RenamedPair {
  TensorPair tensor;
  bool by_hash = false;  // equal hashes; elements could not be compared
};

// Pairs of a tensor of A and one of B with equal dtype, shape and elements, each used once. Equal
// hashes propose a pair, then elements are compared bit by bit. Among several with equal elements
// (all zeros, say) the most similar names are paired.
Result<std::vector<RenamedPair>> find_renamed(const BothCheckpoints& both,
                                              const std::vector<TensorId>& only_a,
                                              const std::vector<TensorId>& only_b,
                                              std::uint64_t memory, Progress* progress);

}  // namespace shw
