// Splits an array into blocks that fit in memory.
#pragma once

#include "core/tensor/shape.h"

namespace shw {

// Sizes of blocks with at most `most` elements for an array of `sizes`. With empty `inner_first`
// the blocks are contiguous runs of the array. `inner_first` lists the dims of another layout of
// the data, fastest first: blocks are then close to square, so that both sides are read and written
// in long runs.
Extents block_sizes(ExtentsView sizes, std::int64_t most, ExtentsView inner_first);

// Iterates over the blocks in array order: `block` is the current one; next() returns false after
// the last. An array without elements has no blocks.
struct Blocks {
  Extents sizes, step;
  Box block = {};
  bool started = false;
  bool next();
  std::uint64_t count() const;
  // Moves so that the next block is number `index`, counted from 0; it must exist.
  void go_to(std::uint64_t index);
};

}  // namespace shw
