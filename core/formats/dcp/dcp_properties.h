// The properties of a tensor as a pickle has them, a tuple: (dtype, layout, requires_grad, memory
// format, pin_memory), and strides since torch 2.15.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/formats/common/pickle_tree.h"

namespace shw {

// What TensorProperties' __setstate__, or one of the calls that make its fields, raises on; nothing
// where Python takes them. `arity`: how many those of the tensors before have, 0 for the first.
std::optional<std::string> refused_property(const PickleTree& tree, std::span<const NodeId> fields,
                                            std::size_t arity);

}  // namespace shw
