// Holds the elements of tensors of two checkpoints against each other, in blocks, on every core.
// Equal blocks cost what reading them costs; those that differ are looked at number by number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/compare/difference.h"
#include "core/compare/tile_pairs.h"

namespace shw {

// What is asked: tensors of one shape, whose dtypes are one or can_compare().
struct AskedPair {
  TensorPair tensor;
  const TileCover* a = nullptr;
  const TileCover* b = nullptr;
};

struct SeenPair {
  ValueDifference values;
  bool disagrees_a = false, disagrees_b = false;  // tiles of one checkpoint that overlap
  std::optional<Error> error = {};                // the first, in the order of the tiles
  bool error_in_b = false;
  bool too_many_pairs = false;  // for the memory: nothing was read
};

// In the order of `asked`. `memory`: what may be taken of it, in bytes. `tolerance`: what
// ElementDifference::beyond counts. An error ends it only where somebody stopped it.
Result<std::vector<SeenPair>> compare_values(const BothCheckpoints& both,
                                             const std::vector<AskedPair>& asked,
                                             std::uint64_t memory, Progress* progress,
                                             std::optional<Tolerance> tolerance = {});

// How memory is dealt out: what is read at once of a run, what a block holds at most, and what is
// left for items that are decoded whole: larger ones are decoded as they are read.
struct CompareShares {
  std::uint64_t piece = 0, block = 0, decoded = 0;
};
CompareShares shares_of(std::uint64_t memory);

}  // namespace shw
