// The operations of a row with their sizes as numbers, forwards from the shapes of the tensors that
// are taken, or back from those that they make.
#pragma once

#include "core/maps/map_values.h"

namespace shw {

// Fills ops, and the shapes of the other side. kUnsupported: a shape does not fit.
Status bind_ops_forward(const MapRow& row, MapValues& values, BoundRow& bound);
Status bind_ops_back(const MapRow& row, MapValues& values, BoundRow& bound);

}  // namespace shw
