// Cuts an array into blocks that fit into memory.
#pragma once

#include "core/tensor/shape.h"

namespace shw {

// The sizes of blocks of at most `most` elements that an array of `sizes` is cut into. Where all
// that goes into it lies in the array's own order, they are runs of the array. `inner_first` holds
// the order of dims, fastest first, of something that lies in another order: blocks are then as
// square as it takes for both sides to be read and written in long runs. May be empty.
Extents block_sizes(ExtentsView sizes, std::int64_t most, ExtentsView inner_first);

// Blocks one after the other, in the array's order: `block` is the first, then the next; false
// after the last. An array without elements has none.
struct Blocks {
  Extents sizes, step;
  Box block = {};
  bool started = false;
  bool next();
  std::uint64_t count() const;
  // The next one is block `index`, counted from 0; it must be there.
  void go_to(std::uint64_t index);
};

}  // namespace shw
