// Parameters in an optimizer's groups that lack states although others have them.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/optimizer_settings.h"

namespace shw {

void find_groups_without_states(const Facts& facts, const SavedOptimizer& optimizer,
                                std::vector<Finding>& findings);

}  // namespace shw
