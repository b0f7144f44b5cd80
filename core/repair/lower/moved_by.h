#pragma once

#include "core/tensor/shape.h"

namespace shw {

// `offsets` in a box that itself begins at `by`; both of one rank.
inline Extents moved_by(ExtentsView offsets, ExtentsView by) {
  Extents out = copy_of(offsets);
  for (std::size_t d = 0; d < out.size(); ++d) out[d] += by[d];
  return out;
}

}  // namespace shw
