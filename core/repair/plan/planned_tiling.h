// The tiles that a plan leaves, as tiles/slice.h draws them.
#pragma once

#include "core/repair/plan/plan_types.h"
#include "core/tiles/slice.h"

namespace shw {

// The chunks of the plan. A relabelled tile keeps its writer.
LaidTensor planned_tiling(const Checkpoint& checkpoint, const PlannedTensor& planned);

}  // namespace shw
