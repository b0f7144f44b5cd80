// Decoding of quantised weights by form: reads the weight and its companions, and computes in
// float32 as the form's reference implementation does.
#pragma once

#include <memory>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/decoded_weight.h"
#include "core/model/checkpoint.h"

namespace shw {

// kUnsupported names the part of the pair that cannot be decoded.
Result<DecodedWeight> decoded_weight(std::shared_ptr<const Checkpoint> checkpoint,
                                     const QuantFamily& family, const QuantPair& pair,
                                     const QuantConfig& config);

}  // namespace shw
