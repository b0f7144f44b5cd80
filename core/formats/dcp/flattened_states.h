// Optimizer states that Megatron-core 0.12 flattens (fully_sharded_model_space). Each is
// saved as a grid: the leading axes count the parts of the parameter along each of its axes, the
// last axis is one part, flattened. The parameter's shape is in mcore_data of .metadata:
//
//   mcore_data {fqn: {"nd_reformulated_orig_global_shape": (1, 32, 8)}}    grid [1, 4, 1, 64]
//
// They are presented in the shape of their parameter: the elements of an item are then runs of
// rows, and every item is the storage of a few chunks.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/formats/format_row.h"
#include "core/formats/pickle/pickle_tree.h"

namespace shw {

// The parameters' shapes by name; empty if no tensor was flattened.
std::map<std::string, Extents> shapes_before_flattening(const PickleTree& tree);

// Returns the checkpoint itself if none of its tensors is a grid of such a shape. A tensor whose
// chunks are not runs of single parts is left as it is.
OpenedCheckpoint with_shapes_before_flattening(std::shared_ptr<const Checkpoint> checkpoint,
                                               const std::map<std::string, Extents>& shapes);

}  // namespace shw
