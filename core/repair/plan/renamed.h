// New names for what is there already: what has to agree before a `.metadata` may say them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/state_path.h"
#include "core/repair/plan/plan_types.h"

namespace shw {

// After the plan no two entries have one name, and every path can be said. Names may change places.
Status check_names(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
