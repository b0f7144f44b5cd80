// A checkpoint whose quantised weights are decoded while reading, under the model's names for them
// and in the dtype of the model's other weights.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// kUnsupported if no weight is quantised in a supported form. A weight that cannot be decoded stays
// as it is stored, and a finding tells why.
Result<std::shared_ptr<const Checkpoint>> dequantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                      Progress* progress);

}  // namespace shw
