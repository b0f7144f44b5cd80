// Compares an adapter's matrices with the sizes of the base model given by --against.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// True if the checkpoint is an adapter and the reference its base model.
bool is_adapter_of_base(const Checkpoint& checkpoint, const Checkpoint& reference);

std::vector<Finding> adapter_against_base(const Checkpoint& adapter, const Checkpoint& base,
                                          const Progress* progress);

}  // namespace shw
