// Boxes of a run of row-major elements: a parameter's part in a partition of a flat
// group.
#pragma once

#include <cstdint>
#include <functional>

#include "core/tensor/shape.h"

namespace shw {

// Calls `take(box, first)` for disjoint boxes that together hold elements [first, last) of `shape`;
// each is a contiguous run from its `first` on. At most 2 * ndim - 1 boxes. `last` must not exceed
// the volume.
void for_each_flat_box(ExtentsView shape, std::int64_t first, std::int64_t last,
                       const std::function<void(const Box&, std::int64_t)>& take);

}  // namespace shw
