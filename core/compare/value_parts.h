// Divides a comparison into parts for threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/compare/tile_pairs.h"

namespace shw {

// Complete pairs [first, last) of one tensor, or blocks [block, block_end) of one pair.
struct ValuePart {
  std::uint32_t tensor = 0;  // index in the requested tensors
  std::uint32_t first = 0, last = 0;
  std::uint64_t block = 0, block_end = 0;
  std::uint64_t elements = 0;
};

// Appends the parts of a tensor whose pairs are [first, last). `most`: elements per block. All
// blocks of a pair that `is_in_order` form one part, because each thread would have to decode the
// whole item.
void add_value_parts(const BothCheckpoints& both, const TilePairs& pairs, std::uint32_t tensor,
                     std::uint32_t first, std::uint32_t last, std::int64_t most,
                     const std::function<bool(const TilePair&)>& is_in_order,
                     std::vector<ValuePart>& parts);

}  // namespace shw
