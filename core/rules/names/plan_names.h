// What rules about names share: the repair that renames.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Renames `finding`'s tensors, with entries that are not tensors, where no two would have one name;
// else says so in its cause.
void plan_new_names(const Facts& facts, std::vector<std::pair<TensorId, std::string>> names,
                    Finding& finding);

}  // namespace shw
