// Tensors whose items fail their own checksums: equal damage on both sides does not make two
// tensors equal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// By tensor: a description of the first damaged item. Items without checksums are not read. Errors:
// cancellation.
Result<std::map<TensorId, std::string>> damaged_items(const Checkpoint& checkpoint,
                                                      const std::vector<TensorId>& tensors,
                                                      Progress* progress);

}  // namespace shw
