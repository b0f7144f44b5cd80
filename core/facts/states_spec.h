// A spec of the model alone says of its optimizer states as well, where they were saved as their
// parameters were: in the same boxes of the same shape. What befell those befell them.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/optimizer_states.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// `spec` itself where it has nothing to add. Entries that are added have no dtype: states have
// their own.
std::shared_ptr<const Spec> with_states(const Checkpoint& checkpoint,
                                        std::shared_ptr<const Spec> spec,
                                        const std::vector<OptimizerState>& states,
                                        const Progress* progress);

}  // namespace shw
