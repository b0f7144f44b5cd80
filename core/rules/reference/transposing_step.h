// The step of a plan that a person can apply where shapes suggest a transpose and nothing proves
// it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/model/checkpoint.h"

namespace shw {

// A "permute-dims" step as JSON that exchanges the last two axes of exactly these tensors, by
// patterns of their names where they match no other tensor. Nullopt if the tensors differ in their
// number of axes, if the step would be too long to type, or if files of the format are not
// rewritten.
std::optional<std::string> transposing_step(const Checkpoint& checkpoint,
                                            std::span<const TensorId> tensors);

}  // namespace shw
