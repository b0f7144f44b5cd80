// What the checkpoint says to the mesh that a person named (--mesh).
#pragma once

#include <optional>

#include "core/facts/check_input.h"
#include "core/model/finding.h"

namespace shw {

// More ranks wrote than the mesh has: it cannot be the one that saved, and no rule may use it.
std::optional<Finding> mesh_too_small(const CheckInput& input);

}  // namespace shw
