// Names that one checkpoint has alone: which of them are one tensor under two names.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/tile_pairs.h"

namespace shw {

// Pairs of a tensor of A and one of B with the same dtype, shape and bytes, each tensor at most
// once. Of several that hold the same bytes (all zeros, say) those with the likest names.
Result<std::vector<TensorPair>> find_renamed(const BothCheckpoints& both,
                                             const std::vector<TensorId>& only_a,
                                             const std::vector<TensorId>& only_b,
                                             std::uint64_t memory, Progress* progress);

}  // namespace shw
