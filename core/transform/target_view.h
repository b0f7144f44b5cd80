// What steps make of a checkpoint, as a checkpoint whose elements are read where they lie when they
// are asked for: nothing is written.
#pragma once

#include <memory>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/transform/target_state.h"

namespace shw {

// Entries that are no tensors are left out, and so are the source's files. kUnsupported where parts
// of a tensor overlap.
Result<std::shared_ptr<const Checkpoint>> target_view(std::shared_ptr<const TargetState> all,
                                                      Progress* progress);

}  // namespace shw
