// What the checkpoint says to the mesh that a person named (--mesh), and to those of the spec.
#pragma once

#include <vector>

#include "core/facts/check_input.h"
#include "core/model/finding.h"

namespace shw {

// Before any rule looks: a mesh that is too small, or that a single tensor contradicts, is told and
// taken out of `input`, and so is the order of ranks of the spec's meshes: no rule places anything
// by what is contradicted. Where nobody named one and the tensors agree on the order of the spec's
// axes, ranks are counted by that, and it stands under "not judged" that nobody said so.
void resolve_mesh(CheckInput& input, std::vector<Finding>& findings);

}  // namespace shw
