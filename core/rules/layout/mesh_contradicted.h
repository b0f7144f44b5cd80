// Checks the user's mesh (--mesh) and the spec's meshes against the checkpoint.
#pragma once

#include <vector>

#include "core/facts/check_input.h"
#include "core/model/finding.h"

namespace shw {

// Runs before all rules. Reports and removes from `input` a mesh that is too small or that a tensor
// contradicts, and also the spec's order of axes, so that no rule uses them. Without --mesh an
// order that the tensors prove is used, and "not checked" says that the user did not confirm it.
void resolve_mesh(CheckInput& input, std::vector<Finding>& findings);

}  // namespace shw
