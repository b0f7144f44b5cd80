// Formats one element as text.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/bytes.h"
#include "core/tensor/dtype.h"

namespace shw {

// Element `index` of row-major little-endian bytes as the shortest text that parses back to the
// same bits; "NaN", "Infinity", "-Infinity"; "true"/"false"; complex as "[re, im]". Values with
// `quoted` set (NaN, infinities) are written as strings in JSON.
std::string element_text(Dtype dtype, BytesView bytes, std::size_t index);

}  // namespace shw
