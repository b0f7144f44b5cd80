// Selects tensors by names that the user typed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// The named tensor, or an error with similar names.
Result<TensorId> find_tensor(const Checkpoint& checkpoint, const std::string& fqn);

// True if it contains *, ? or [, so that matches_pattern() is used.
bool is_pattern(const std::string& name);

// The named tensor, or the only one that matches a pattern or filter
// (filter.h).
Result<TensorId> find_one_tensor(const Checkpoint& checkpoint, const std::string& words);

// Tensors that match names, patterns or filters, each once, in natural order; all if
// `names` is empty. An error if one matches nothing. An existing name is never treated as a
// pattern.
Result<std::vector<TensorId>> choose_tensors(const Checkpoint& checkpoint,
                                             std::span<const std::string> names);

}  // namespace shw
