// Decodes the classes of torchao: int8, FP8, int4, MX and NVFP4. The parameter W of a module is
// stored as _W_qdata and companions in safetensors, as W.qdata where it was saved with its class.
#pragma once

#include <string_view>

#include "core/facts/names/quant_schemes.h"
#include "core/facts/values/quant_source.h"

namespace shw {

// True for the classes whose tensors torchao_decoder() decodes.
bool is_decoded_class(std::string_view type);

// If a file names the class of the weight, the class decides how it is decoded; else the dtypes and
// shapes, where they fit one form only.
Result<DecodedWeight> torchao_decoder(const QuantSource& from, QuantForm form);

// Codes of 4 bits along a row: in bytes of int8 from -8 with zero points that are numbers
// (Int4Tensor: code * scale + zero), or in 32-bit words from 0 with zero points that are codes
// (Int4PlainInt32Tensor: (code - zero) * scale).
Result<DecodedWeight> int4_decoder(const QuantSource& from);
// Int4TilePackedTo4dTensor: (code - 8) * scale + zero.
Result<DecodedWeight> int4_tiles_decoder(const QuantSource& from);
// MXTensor and NVFP4Tensor, with scales in order or swizzled.
Result<DecodedWeight> torchao_mx_decoder(const QuantSource& from);
Result<DecodedWeight> torchao_nvfp4_decoder(const QuantSource& from);

}  // namespace shw
