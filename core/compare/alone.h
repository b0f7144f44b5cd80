// Names that one checkpoint has alone: which of them are one tensor under two names.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/tile_pairs.h"

namespace shw {

struct RenamedPair {
  TensorPair tensor;
  bool by_hash = false;  // the hashes are equal; the elements could not be compared
};

// Pairs of a tensor of A and one of B with the same dtype, shape and elements, each tensor at most
// once. Equal hashes propose a pair, and its elements are then compared to the bit. Of several that
// hold the same elements (all zeros, say) those with the likest names.
Result<std::vector<RenamedPair>> find_renamed(const BothCheckpoints& both,
                                              const std::vector<TensorId>& only_a,
                                              const std::vector<TensorId>& only_b,
                                              std::uint64_t memory, Progress* progress);

}  // namespace shw
