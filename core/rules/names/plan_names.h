// The rename repair, shared by rules about names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/facts/facts.h"
#include "core/model/finding.h"

namespace shw {

// Adds renames of the finding's tensors and non-tensor entries, unless two would get the same name;
// then the cause says so.
void plan_new_names(const Facts& facts, std::vector<std::pair<TensorId, std::string>> names,
                    Finding& finding);

}  // namespace shw
