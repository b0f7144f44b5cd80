// Decodes HQQ's weights (HQQLinear of the hqq library).
//
//   NAME.W_q      codes of a matrix of groups, packed along its rows: byte (or, of 3 bits, 32-bit
//                 word) i of a column holds rows i, i + n, i + 2n, ... of n packed rows, the first
//                 in the highest bits; view_as_float: the bytes of that in floats
//   NAME.scale, NAME.zero   one per group: (code - zero) * scale
//   NAME.shape    of the weight, which the matrix of groups is in row-major order
//   NAME.nbits, NAME.axis, NAME.group_size, NAME.packing, ...   tensors in safetensors, plain
//   values
//                 in hqq's own qmodel.pt
#pragma once

#include "core/facts/values/quant_source.h"

namespace shw {

// Computed in the dtype of the scales, each operation rounded, as hqq does.
Result<DecodedWeight> hqq_decoder(const QuantSource& from);

}  // namespace shw
