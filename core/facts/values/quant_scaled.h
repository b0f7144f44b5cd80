// Decodes 8-bit weights that are multiplied by a scale per block, row, group or tensor.
#pragma once

#include "core/facts/values/quant_source.h"

namespace shw {

// The scale is the first companion. `zero`: zero points of the scale's shape. `divided_by`: divisor
// of the scale (127 in bitsandbytes' int8).
Result<DecodedWeight> scaled_decoder(const QuantSource& from, std::optional<TensorId> zero,
                                     float divided_by);
// Decodes int8 or FP8 weights of a module, as the config has them.
Result<DecodedWeight> scaled_codes_decoder(const QuantSource& from);
// Decodes float8_e4m3fn stored as uint8.
Result<DecodedWeight> scaled_bytes_decoder(const QuantSource& from);
// Decodes MXFP8: a power of two per 32 columns.
Result<DecodedWeight> mx8_decoder(const QuantSource& from);

// The model's name for the decoded weight: "0.weight" for torchao's "0._weight_qdata",
// "0.weight.qdata" and "0.weight.tensor_impl.int_data".
std::string decoded_name(const QuantSource& from);

// Numbers of a box; with `as_bytes` its bytes are float8_e4m3fn.
QuantFloats read_box_float8(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                            bool as_bytes);
// Scales in a box; bytes are exponents of two (E8M0).
Result<std::vector<float>> read_box_scales(const Checkpoint& checkpoint, TensorId scale,
                                           const Box& box);

}  // namespace shw
