// Quantised weights as the numbers that they stand for, form by form: what is read of the weight
// and of the tensors beside it, and the arithmetic of the form's reference implementation in
// float32.
#pragma once

#include <memory>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_schemes.h"
#include "core/facts/values/decoded_weight.h"
#include "core/model/checkpoint.h"

namespace shw {

// kUnsupported says what of the pair is not decoded.
Result<DecodedWeight> decoded_weight(std::shared_ptr<const Checkpoint> checkpoint,
                                     const QuantFamily& family, const QuantPair& pair,
                                     const QuantConfig& config);

}  // namespace shw
