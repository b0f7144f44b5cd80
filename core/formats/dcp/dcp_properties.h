// Properties of a tensor as pickled, a tuple: (dtype, layout, requires_grad, memory format,
// pin_memory), and strides since torch 2.15.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/formats/pickle/pickle_tree.h"

namespace shw {

// The property at which TensorProperties.__setstate__ or the construction of its fields would
// raise; empty if there is none. `arity`: number of properties of the previous tensors, 0 for the
// first.
std::optional<std::string> refused_property(const PickleTree& tree, std::span<const NodeId> fields,
                                            std::size_t arity);

}  // namespace shw
