// The weighted sum of several checkpoints of one model, element by element.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// Floating-point tensors become sum(weights[i] * checkpoints[i]), summed in float64 (float32
// numbers times float64 weights) and rounded once to the dtype in the first checkpoint. All other
// tensors, and those named by `aside`, are taken from the first. Formats, chunks and dtypes may
// differ. kUnsupported, with the tensor, if a checkpoint lacks it or has another shape, or if
// weights are quantised.
Result<std::shared_ptr<const Checkpoint>> average_checkpoints(
    const std::vector<std::shared_ptr<const Checkpoint>>& checkpoints,
    const std::vector<double>& weights, const std::set<std::string, std::less<>>& aside,
    Progress* progress);

}  // namespace shw
