// Quantised weights as the numbers that they stand for, form by form: what is read of the weight
// and of the tensors beside it, and the arithmetic of the form's reference implementation in
// float32.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/facts/names/quant_config.h"
#include "core/facts/names/quant_schemes.h"
#include "core/model/checkpoint.h"

namespace shw {

// A weight that can be decoded.
struct DecodedWeight {
  std::string fqn;
  Extents shape;
  // Rows along the first dimension that are made together: all of them where the weight is stored
  // the other way round.
  std::int64_t rows_at_once = 1;
  // Elements of rows [first, first + count), row-major.
  std::function<Result<std::vector<float>>(std::int64_t first, std::int64_t count)> decode;
  std::vector<TensorId> used;  // of the checkpoint: the weight and all that only it needs
};

// kUnsupported says what of the pair is not decoded.
Result<DecodedWeight> decoded_weight(std::shared_ptr<const Checkpoint> checkpoint,
                                     const QuantFamily& family, const QuantPair& pair,
                                     const QuantConfig& config);

}  // namespace shw
