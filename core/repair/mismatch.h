// One element that is another one than it should be, in words.
#pragma once

#include <string>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct Mismatch {
  Extents index = {};                     // in the tensor of the result
  std::string value = {}, expected = {};  // as text; with their bytes where the texts are the same
};

// The first one of `box`, which lies in the tensor: its elements row-major, as they are there and
// as they should be. The two differ, and are as long.
Mismatch first_mismatch(Dtype dtype, const Box& box, BytesView there, BytesView expected);

}  // namespace shw
