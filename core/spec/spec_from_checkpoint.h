// Derives expectations from another checkpoint of the same model: matching tensors, shapes and
// dtypes.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// Matches names: equal; equal without wrappers (model., module., _orig_mod.); or
// equal after replacing one first part consistently. Ambiguous names are not
// matched.
struct NameMap {
  std::vector<std::optional<TensorId>> in_reference;  // one per tensor of the checkpoint
};
NameMap match_names(const Checkpoint& checkpoint, const Checkpoint& reference,
                    const Progress* progress = nullptr);

// Entries have the checkpoint's names; tensors that only the reference has keep its names. Tensors
// with holes in the reference are skipped because they cannot be trusted; so are checkpoint
// tensors listed in `doubted`. Optimizer states are skipped if the checkpoint has none (an
// exported model).
Spec spec_from_checkpoint(const Checkpoint& checkpoint, const Checkpoint& reference,
                          const NameMap& names, const std::set<TensorId>& doubted = {},
                          const Progress* progress = nullptr);

}  // namespace shw
