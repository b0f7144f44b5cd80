// Decodes codes of 2 to 8 bits that are packed in words or bytes, in the forms of integers.
#pragma once

#include "core/facts/values/quant_source.h"

namespace shw {

// GPTQ packs 32 / bits rows into one, with codes of 3, 5, 6 and 7 bits across rows or in planes;
// AWQ packs as many columns, in its own order. Both store the matrix with inputs as rows, and zero
// points packed along columns.
Result<DecodedWeight> grouped_decoder(const QuantSource& from);
// bitsandbytes: blocks of 4-bit codes into a table of 16 numbers, high halves first. The maxima of
// the blocks may be quantised themselves.
Result<DecodedWeight> nf_decoder(const QuantSource& from);
// MLX: codes along a row, lowest bits first; code * scale of the group + bias. Its floating-point
// modes have no biases.
Result<DecodedWeight> mlx_decoder(const QuantSource& from);
// compressed-tensors, pack-quantized: codes of 4 or 8 bits along a row; the middle code is 0.
Result<DecodedWeight> packed_decoder(const QuantSource& from);
// BitNet (transformers, integrations/bitnet.py): rows k, k + n, k + 2n and k + 3n of the weight are
// in bits 0-1, 2-3, 4-5 and 6-7 of packed row k of n, as -1, 0 and 1 plus 1.
Result<DecodedWeight> ternary_decoder(const QuantSource& from);

}  // namespace shw
