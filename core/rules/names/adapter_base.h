// The sizes of an adapter's matrices beside those of the base model that --against names.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// True where the checkpoint is an adapter and the reference the model that it changes.
bool is_adapter_of_base(const Checkpoint& checkpoint, const Checkpoint& reference);

std::vector<Finding> adapter_against_base(const Checkpoint& adapter, const Checkpoint& base,
                                          const Progress* progress);

}  // namespace shw
