// The tensors of one quantised weight: the stored weight, its scales, zero points.
#pragma once

#include <optional>
#include <vector>

#include "core/facts/names/quantised_weight.h"
#include "core/model/checkpoint.h"

namespace shw::verbs {

// Weights that consist of at least two tensors. A tensor belongs to at most one of them.
std::vector<QuantisedWeight> quantised_weights(const Checkpoint& checkpoint);
// nullopt if the tensor does not belong to a quantised weight, or is its only part.
std::optional<QuantisedWeight> quantised_parts_of(const Checkpoint& checkpoint, TensorId tensor);

}  // namespace shw::verbs
