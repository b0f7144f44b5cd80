// Detects a spec or reference of another model before the comparing rules run, which would
// otherwise report thousands of differences.
#pragma once

#include <optional>
#include <span>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "core/rules/reference/one_side_quantised.h"
#include "core/spec/spec.h"

namespace shw {

// One finding if the spec is of another model.
std::optional<Finding> other_model_in_spec(const Checkpoint& checkpoint, const Spec& spec,
                                           const Progress* progress);
// Like other_model_in_spec(), for a reference; `counterparts` from match_names(). A weight that one
// side alone has quantised counts as one name on each side, which agrees.
std::optional<Finding> other_model_in_reference(
    const Checkpoint& checkpoint, const Checkpoint& reference,
    std::span<const std::optional<TensorId>> counterparts, const OneSideQuantised& sides,
    const Progress* progress);

}  // namespace shw
