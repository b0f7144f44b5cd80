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

// Floating tensors become sum(weights[i] * checkpoints[i]), summed in float64 (as float32 numbers
// times float64 weights) and rounded once to the dtype of the first. Everything else is the
// first's, and so is what `aside` names. Formats, tiles and dtypes may differ. kUnsupported, with
// the tensor, where one has it and another has not, or in another shape, and where weights are
// quantised.
Result<std::shared_ptr<const Checkpoint>> averaged(
    const std::vector<std::shared_ptr<const Checkpoint>>& checkpoints,
    const std::vector<double>& weights, const std::set<std::string, std::less<>>& aside,
    Progress* progress);

}  // namespace shw
