// The work of an executor on one box, from slab to slab. A plain value that kernels take as
// argument.
#pragma once

#include "core/program/program.h"

namespace shw {

struct TileJob {
  ElementOp op = ElementOp::kCopy;
  Dtype from = Dtype::kUnknown, to = Dtype::kUnknown;
  LayoutPair layouts;                  // canonical, bytes in the two slabs; source strides are
                                       // undefined for constants
  std::uint64_t constant[2] = {0, 0};  // the bytes of an element
  CastChain via{};
  float factor = 1;  // for kScale
};

}  // namespace shw
