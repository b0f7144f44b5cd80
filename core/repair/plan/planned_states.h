// Makes a plan consistent between a parameter and its optimizer states, whichever findings repair
// them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/diagnosis.h"
#include "core/spec/spec.h"

namespace shw {

// States that cannot be placed by the chunks of their parameter, with the reason. The same plan may
// give the parameter another shape or move its elements, so that its chunks no longer tell the
// place. A spec with the parameter's layout still does, unless elements move inside chunks. A state
// can also not be placed if another state of the parameter moves and its ranks have other rows of
// that state.
std::map<TensorId, std::string> states_of_moved_parameters(
    const Checkpoint& checkpoint, const Spec* spec,
    const std::map<TensorId, const Diagnosis*>& planned, const Progress* progress);

// Keeps, over all findings together, only rows that every moment of a parameter still has
// (keep_common_moments(), retained_chunks.h). Returns tensors to plan differently than their own
// finding asks, and moments without a finding. `named`: tensors that a finding says how to repair.
std::vector<PartlyLost> plan_common_moment_rows(const Checkpoint& checkpoint,
                                                const std::map<TensorId, const Diagnosis*>& planned,
                                                const std::set<TensorId>& named);

}  // namespace shw
