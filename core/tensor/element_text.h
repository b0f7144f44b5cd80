// One element as text.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"

namespace shw {

// Element `index` of row-major little-endian bytes as the shortest text that reads back exactly;
// "NaN", "Infinity", "-Infinity"; "true"/"false"; complex as "[re, im]". `quoted` values (NaN,
// infinities) are JSON strings at the edge.
std::string element_text(Dtype dtype, BytesView bytes, std::size_t index);

}  // namespace shw
