// What another checkpoint of the same model says about this one: which of its tensors is which, and
// the shapes and dtypes that follow.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/spec/spec.h"

namespace shw {

// Who is who. Names are equal, or equal without what wrappers put before and between (model.,
// module., _orig_mod.), or equal but for one first part that is replaced everywhere alike. What
// could be two is nothing.
struct NameMap {
  std::vector<std::optional<TensorId>> in_reference;  // one a tensor of the checkpoint
};
NameMap match_names(const Checkpoint& checkpoint, const Checkpoint& reference,
                    const Progress* progress = nullptr);

// Entries have the checkpoint's own names; a tensor that only the reference has keeps its name
// there. Tensors of the reference with holes are left out: a broken one is no truth; and of the
// checkpoint those of `doubted`. Optimizer states are left out where the checkpoint has none at
// all: a model that was exported without.
Spec spec_from_checkpoint(const Checkpoint& checkpoint, const Checkpoint& reference,
                          const NameMap& names, const std::set<TensorId>& doubted = {},
                          const Progress* progress = nullptr);

}  // namespace shw
