// Extends a spec of the model to its optimizer states if they were saved with the same shapes and
// boxes as their parameters, so that the same damage applies. Also if one of the two lost chunks
// and the other has the expected size.
#pragma once

#include <memory>
#include <vector>

#include "core/base/progress.h"
#include "core/facts/states/optimizer_states.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// True for a moment or master whose chunks equal those of its parameter, rank by rank, but cover
// less: the ranks of an axis that the saver lost all claimed one chunk. Factored or projected
// states have chunks of other sizes.
bool is_smaller_than_parameter(const Checkpoint& checkpoint, const OptimizerState& state);

// Returns `spec` itself if there is nothing to add. Added entries have no dtype, because states
// have their own.
std::shared_ptr<const Spec> with_states(const Checkpoint& checkpoint,
                                        std::shared_ptr<const Spec> spec,
                                        const std::vector<OptimizerState>& states,
                                        const Progress* progress);

}  // namespace shw
