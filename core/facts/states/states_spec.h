// A spec of the model alone says of its optimizer states as well, where they were saved as their
// parameters were: in the same boxes of the same shape, so that what befell those befell them. It
// does as well where one of the two lost tiles and the other is as large as it should be.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/states/optimizer_states.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// A moment or master in several tiles that are as large as those of the whole parameter, rank by
// rank, and make up less than it: ranks of an axis that the saver left out all claimed one tile. A
// factored or projected state has tiles of its own size.
bool is_short_of_parameter(const Checkpoint& checkpoint, const OptimizerState& state);

// `spec` itself where it has nothing to add. Entries that are added have no dtype: states have
// their own.
std::shared_ptr<const Spec> with_states(const Checkpoint& checkpoint,
                                        std::shared_ptr<const Spec> spec,
                                        const std::vector<OptimizerState>& states,
                                        const Progress* progress);

}  // namespace shw
