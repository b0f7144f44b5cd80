// Parses numpy's codes of element types: "<f4", "|b1", ">i8".
#pragma once

#include <string_view>

#include "core/tensor/dtype.h"

namespace shw {

struct NumpyDtype {
  Dtype dtype = Dtype::kUnknown;  // kUnknown for types that torch lacks
  bool is_big_endian = false;
};

NumpyDtype numpy_dtype(std::string_view code);

}  // namespace shw
