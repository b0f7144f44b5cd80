// Compares elements of tensors of two checkpoints in blocks, on all cores. Equal blocks cost only
// their reading; others are compared by number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/difference.h"
#include "core/compare/tile_pairs.h"

namespace shw {

// Tensors of equal shape whose dtypes are equal or can_compare().
struct RequestedPair {
  TensorPair tensor;
  const TileCover* a = nullptr;
  const TileCover* b = nullptr;
};

struct ComparedPairResult {
  ValueDifference values;
  bool disagrees_a = false, disagrees_b = false;  // overlapping tiles of one checkpoint disagree
  std::optional<Error> error = {};                // the first by order of tiles
  bool error_in_b = false;
  bool too_many_pairs = false;  // too many for the memory: not read
};

// In the order of `asked`. `memory`: limit in bytes. `tolerance`: elements above it are counted by
// ElementDifference::beyond. Only cancellation ends it with an error.
Result<std::vector<ComparedPairResult>> compare_values(const BothCheckpoints& both,
                                                       const std::vector<RequestedPair>& asked,
                                                       std::uint64_t memory, Progress* progress,
                                                       std::optional<Tolerance> tolerance = {});

// Division of the memory: bytes read at once of a run, size of a block, and the rest for items
// decoded as a whole (larger ones are decoded while reading).
struct CompareShares {
  std::uint64_t piece = 0, block = 0, decoded = 0;
};
CompareShares shares_of(std::uint64_t memory);

}  // namespace shw
