// What the matrices of one layer say about each other where no spec speaks of them (spec/
// failures.md 6.c E1, 0.7.12).
#pragma once

#include "core/facts/layout/derived_layout.h"

namespace shw {

// Two witnesses, and each is enough:
// - one matrix beside intact siblings: the second matrix of the layer is cut into T parts along the
//   dimension that it contracts, and the first has a T-th of the rows that it should have;
// - a tensor-parallel axis that a person named (--mesh), and no tensor of the checkpoint knows.
// Where all matrices are shrunk alike (TE before #2713) their sizes agree with one another: without
// a mesh no law tells it, and only the writers hint at it (writer-mosaic).
void derive_by_siblings(const CheckInput& input, DerivedLayouts& out);

}  // namespace shw
