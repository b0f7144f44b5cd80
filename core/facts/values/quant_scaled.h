// Weights of 8 bits that are multiplied with the scale of their block, row, group or tensor.
#pragma once

#include "core/facts/values/quant_source.h"

namespace shw {

// By the first companion. `zero`: zero points of the scale's shape. `divided_by`: what the scale is
// divided by (127 in bitsandbytes' int8).
Result<DecodedWeight> scaled_form(const QuantSource& from, std::optional<TensorId> zero,
                                  float divided_by);
// float8_e4m3fn whose bytes are stored as uint8.
Result<DecodedWeight> scaled_bytes_form(const QuantSource& from);
// MXFP8: a power of two per 32 columns.
Result<DecodedWeight> mx8_form(const QuantSource& from);

// Scales of rows [first, first + count): bytes are exponents of two (E8M0).
Result<std::vector<float>> scales_in_box(const Checkpoint& checkpoint, TensorId scale,
                                         const Box& box);

}  // namespace shw
