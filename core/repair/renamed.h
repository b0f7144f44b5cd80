// New names for what is there already: what has to agree before a `.metadata` may say them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/repair/plan_types.h"

namespace shw {

// The path in the state dict under the new name, cut into parts as the old one was; an index stays
// one. Nothing where the path does not spell the old name, or the new one has other parts.
std::optional<std::vector<PathPart>> path_after(std::span<const PathPart> path,
                                                std::string_view old_name,
                                                std::string_view new_name);

// After the plan no two entries have one name, and every path can be said. Names may change places.
Status check_names(const Checkpoint& checkpoint, const Plan& plan);

}  // namespace shw
