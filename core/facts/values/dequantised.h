// A checkpoint whose quantised weights read as the numbers that they stand for: under the name that
// the model has for the weight, in the dtype of the model's other weights. Nothing is decoded
// before it is read.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// kUnsupported where no weight of it is quantised in a form that is decoded. A weight that cannot
// be decoded stays as it is stored, and a finding says why.
Result<std::shared_ptr<const Checkpoint>> dequantised(std::shared_ptr<const Checkpoint> checkpoint,
                                                      Progress* progress);

}  // namespace shw
