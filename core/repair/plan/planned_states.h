// What a plan settles between a parameter and its optimizer states, whichever findings mend them.
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

// Why states that were put where the chunks of their parameter lie cannot be: the same plan gives
// the parameter another shape or moves its elements, so where those chunks lie tells nothing. A
// spec with the layout of the parameter says it all the same, unless elements move inside of
// chunks. Nor can they where another state of the parameter is moved, and its writers hold other
// rows of that one.
std::map<TensorId, std::string> states_of_moved_parameters(
    const Checkpoint& checkpoint, const Spec* spec,
    const std::map<TensorId, const Diagnosis*>& planned, const Progress* progress);

// keep_common_moments (survivors.h) over all findings: what has to be planned in another way than
// its own finding asks for, and moments that no finding names. `named`: tensors that a finding says
// how to mend.
std::vector<PartlyLost> common_moments(const Checkpoint& checkpoint,
                                       const std::map<TensorId, const Diagnosis*>& planned,
                                       const std::set<TensorId>& named);

}  // namespace shw
