// Tensors whose tiles lie at equal distances in the same files, as those of a model's layers and
// experts do: one dataset can map the tiles of them all, and each tensor is a part of it. The
// library copies what it is told of a dataset three times, tile by tile: an export of 100,000
// tensors of 16 tiles took 35 s of processor time, and so 22, on a busy machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/hdf5_view/mapped_tensor.h"

namespace shw {

struct TileStack {
  std::vector<std::size_t> tensors;  // which of those that were given, as they lie in the stack
  std::vector<std::int64_t> steps;   // of every tile, elements from one tensor to the next
};

// Of tensors that are tiles, each in one run. `first`: the id of the first that is given.
std::vector<TileStack> find_stacks(const Checkpoint& checkpoint, TensorId first,
                                   std::span<const MappedTensor> tensors);

}  // namespace shw
