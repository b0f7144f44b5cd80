// Tensors whose items are not what was written, by their own checksums: two copies that are damaged
// alike are not the same tensor.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// By tensor, how its first damaged item is damaged. Items of a format without checksums are not
// read. An error only where it was cancelled.
Result<std::map<TensorId, std::string>> damaged_items(const Checkpoint& checkpoint,
                                                      const std::vector<TensorId>& tensors,
                                                      Progress* progress);

}  // namespace shw
