// A run of a tensor's elements in row-major order as boxes: what a partition of a flat group holds
// of one parameter.
#pragma once

#include <cstdint>
#include <functional>

#include "core/tensor/shape.h"

namespace shw {

// Calls `take(box, first)` for disjoint boxes that hold elements [first, last) of `shape`; each is
// itself a run from its `first` on. At most 2 * ndim - 1 boxes. `last` is at most the volume.
void each_flat_box(ExtentsView shape, std::int64_t first, std::int64_t last,
                   const std::function<void(const Box&, std::int64_t)>& take);

}  // namespace shw
