// Derives layouts from the other matrices of a layer, if no spec gives
// them.
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// Either evidence is sufficient:
// - one matrix next to intact siblings: the second matrix of the layer is split into T parts along
//   its contracted dimension, and the first has 1/T of the expected rows;
// - a tensor-parallel axis of the user's mesh (--mesh) that splits no tensor of the checkpoint.
// If all matrices are too short alike (TE before #2713) their sizes agree with one another: without
// a mesh only the writers hint at it (rule writer-mosaic).
void derive_by_siblings(const CheckInput& input, DerivedLayouts& out);

}  // namespace shw
