// The role of a weight by its name, shared with the same weight of other layers and experts.
#pragma once

#include <string>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// True for matrices and for vectors such as norm weights, but not for biases, which may be zero by
// design, nor for optimizer states and adapters.
bool is_model_weight(const Checkpoint& checkpoint, TensorId tensor);

// The name without layer and expert numbers: tensors with the same role in other layers or experts
// have one kind. Numbers of a module's own name ("bn2") stay.
std::string kind_of_name(std::string_view fqn, std::size_t ndim);

}  // namespace shw
