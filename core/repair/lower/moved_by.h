#pragma once

#include "core/tensor/shape.h"

namespace shw {

// Adds `by`, the origin of a box, to `offsets` inside it. Both have the same number of dims.
inline Extents translated(ExtentsView offsets, ExtentsView by) {
  Extents out = copy_of(offsets);
  for (std::size_t d = 0; d < out.size(); ++d) out[d] += by[d];
  return out;
}

}  // namespace shw
