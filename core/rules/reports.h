// What the rules of the five reports (spec/failures.md 2 to 6) know of each other.
#pragma once

#include <set>
#include <vector>

#include "core/rules/check.h"

namespace shw {

// Tensors that a cause already explains: a later rule leaves them alone.
std::set<TensorId> split_locally(const RuleInput& input);    // S2
std::set<TensorId> saved_as_global(const RuleInput& input);  // S3

}  // namespace shw
