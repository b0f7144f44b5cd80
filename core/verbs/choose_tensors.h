// Tensors by the names that a person typed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// The tensor that was named, or an error that says which names are near.
Result<TensorId> find_tensor(const Checkpoint& checkpoint, const std::string& fqn);

// Has *, ? or [: matches_pattern() is asked.
bool is_pattern(const std::string& name);

// The tensor that was named, or the only one that a pattern or the words of a filter (filter.h)
// fit.
Result<TensorId> find_one_tensor(const Checkpoint& checkpoint, const std::string& words);

// Those that are named, or fit a pattern or the words of a filter, each once, in natural order; all
// where nothing is named. An error where a name or a pattern fits none. A name that is there is
// never a pattern.
Result<std::vector<TensorId>> choose_tensors(const Checkpoint& checkpoint,
                                             std::span<const std::string> names);

}  // namespace shw
