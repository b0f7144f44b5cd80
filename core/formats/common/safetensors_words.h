// The words that safetensors files have for dtypes.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/tensor/dtype.h"

namespace shw {

// "BF16"; empty where safetensors has no word for it.
std::string_view safetensors_word(Dtype dtype);
// Where the reference implementation puts the tensors of a dtype: of higher ones first, then by
// name. 0 for a word that it does not have.
std::size_t safetensors_order(std::string_view dtype_text);

}  // namespace shw
