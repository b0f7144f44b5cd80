// The elements of a box of a tensor in one run, row-major, whatever tiles they lie in.
#pragma once

#include "core/facts/values/tensor_pieces.h"

namespace shw {

// False if they cannot all be read. The memory of `bytes` is used again.
bool read_box_of(const PiecedTensor& tensor, const Box& box, Bytes& bytes);

}  // namespace shw
