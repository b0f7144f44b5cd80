// Binds the operations of a row: sizes become numbers, from the shapes of the row's inputs
// (forward) or of its outputs (back).
#pragma once

#include "core/maps/map_values.h"

namespace shw {

// Fills ops and the shapes of the other side. kUnsupported if a shape does not fit.
Status bind_ops_forward(const MapRow& row, MapValues& values, BoundRow& bound);
Status bind_ops_backward(const MapRow& row, MapValues& values, BoundRow& bound);

}  // namespace shw
