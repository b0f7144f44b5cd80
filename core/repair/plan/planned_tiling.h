// Tiles of the planned result, in the form that tiles/slice.h draws.
#pragma once

#include "core/repair/plan/plan_types.h"
#include "core/tiles/slice.h"

namespace shw {

// Tiles of the planned chunks. A relabelled tile keeps its rank.
TiledTensor planned_tiling(const Checkpoint& checkpoint, const PlannedTensor& planned);

}  // namespace shw
