// Reads the elements of a box of a tensor, row-major, from any number of chunks.
#pragma once

#include "core/facts/values/tensor_pieces.h"

namespace shw {

// False if they cannot all be read. Reuses the memory of `bytes`.
bool read_box_of(const PiecedTensor& tensor, const Box& box, Bytes& bytes);

}  // namespace shw
