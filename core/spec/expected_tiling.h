// The tiles that a spec expects, as tiles/slice.h draws them.
#pragma once

#include "core/spec/spec.h"
#include "core/tiles/slice.h"

namespace shw {

// The boxes that mesh and placements imply, each drawn once with its lowest rank; the bare shape
// as one tile without a writer where the spec names no mesh.
LaidTensor expected_tiling(const SpecEntry& entry);

}  // namespace shw
