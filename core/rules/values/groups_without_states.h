// Parameters that an optimizer's groups name, and that have no states beside others that have.
#pragma once

#include <vector>

#include "core/facts/facts.h"
#include "core/facts/states/optimizer_settings.h"

namespace shw {

void find_groups_without_states(const Facts& facts, const SavedOptimizer& optimizer,
                                std::vector<Finding>& findings);

}  // namespace shw
