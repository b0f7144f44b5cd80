// The expected chunks of a spec entry, for drawing.
#pragma once

#include "core/spec/spec.h"
#include "core/tiles/slice.h"

namespace shw {

// One box per distinct part with its lowest rank; without a mesh the whole shape without
// rank.
TiledTensor expected_tiling(const SpecEntry& entry);

}  // namespace shw
