// Decoding of quantised weights by form: reads the weight and its companions, and computes in
// float32 as the form's reference implementation does.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_families.h"
#include "core/facts/values/decoded_weight.h"
#include "core/formats/common/tensor_class.h"
#include "core/model/checkpoint.h"

namespace shw {

using TensorClasses = std::map<std::string, TensorClass>;  // by name of the wrapping tensor
// The classes that decoding needs: of the families of torchao.
TensorClasses classes_of_families(const Checkpoint& checkpoint,
                                  const std::vector<QuantFamily>& families);

// kUnsupported names the part of the pair that cannot be decoded.
Result<DecodedWeight> decoded_weight(std::shared_ptr<const Checkpoint> checkpoint,
                                     const QuantFamily& family, const QuantPair& pair,
                                     const QuantConfig& config, const TensorClasses& classes);

}  // namespace shw
