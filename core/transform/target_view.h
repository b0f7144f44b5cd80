// A target as a checkpoint: elements are read from their origin on demand, nothing is written.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/transform/target_state.h"

namespace shw {

// Without non-tensor entries and without the source's files. kUnsupported if parts of a tensor
// overlap.
Result<std::shared_ptr<const Checkpoint>> target_view(std::shared_ptr<const TargetState> all,
                                                      Progress* progress);

}  // namespace shw
