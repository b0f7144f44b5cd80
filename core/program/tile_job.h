// What an executor is given: one box, from slab to slab. A plain value that a kernel takes as it
// is.
#pragma once

#include "core/program/program.h"

namespace shw {

struct TileJob {
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  LayoutPair layouts;                  // canonical, in bytes of the two slabs; the source's strides
                                       // mean nothing for a constant
  std::uint64_t constant[2] = {0, 0};  // the bytes of an element
  Hops via{};
  float factor = 1;  // of kScale
};

}  // namespace shw
