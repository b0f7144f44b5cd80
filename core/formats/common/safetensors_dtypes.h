// Names of dtypes in safetensors files.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/tensor/dtype.h"

namespace shw {

// The dtype's name, such as "BF16"; empty if safetensors has none.
std::string_view safetensors_dtype_name(Dtype dtype);
// Rank of a dtype in the reference implementation's order of tensors: higher ranks first, then by
// name. 0 for an unknown name.
std::size_t safetensors_dtype_rank(std::string_view dtype_text);

}  // namespace shw
