// Is what a person named as the truth (--spec, --against) about this model at all? Asked before the
// rules compare: of another model they would say a thousand things, and all of them one.
#pragma once

#include <optional>
#include <span>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "core/spec/spec.h"

namespace shw {

// One finding where the spec is of another model.
std::optional<Finding> other_model_in_spec(const Checkpoint& checkpoint, const Spec& spec,
                                           const Progress* progress);
// The same for a reference; `counterparts` as match_names() gave them.
std::optional<Finding> other_model_in_reference(
    const Checkpoint& checkpoint, const Checkpoint& reference,
    std::span<const std::optional<TensorId>> counterparts, const Progress* progress);

}  // namespace shw
