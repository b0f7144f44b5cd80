// The tensors that make one quantised weight together: the stored weight, its scales, zero points.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw::verbs {

struct QuantisedParts {
  std::string scheme;             // "FP8"
  std::string name;               // of the weight, without the endings of its parts
  std::vector<TensorId> tensors;  // the stored weight first
};

// nullopt where the tensor is not a part of a quantised weight, or its only one.
std::optional<QuantisedParts> quantised_parts_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw::verbs
