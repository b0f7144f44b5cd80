// Checks new names of entries before `.metadata` is written with them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/state_path.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// Checks that no two entries have one name after the plan and that every path can be expressed.
// Names may be swapped.
Status check_names(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
