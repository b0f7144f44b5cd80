// Tensor subclasses in items of DCP: torchao's int8 and float8 weights, its 8-bit and 4-bit
// optimizer states. .metadata records the shape and dtype of the represented tensor; its item
// contains the wrapped tensors (common/tensor_subclass.h). Each of them becomes a tensor: "w" with
// "qdata" and "scale" becomes "w.qdata" and "w.scale".
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/common/tensor_class.h"
#include "core/formats/format_row.h"

namespace shw {

// Returns the checkpoint itself if no item contains a subclass. Only reads headers of items whose
// length does not match their elements, and after the first subclass those of one item per tensor.
// Tensors whose wrapped tensors do not form boxes are left unchanged.
OpenedCheckpoint with_wrapped_tensors(std::shared_ptr<const Checkpoint> checkpoint,
                                      Progress* progress);

// The classes of the tensors that with_wrapped_tensors() made; reads .metadata and one item per
// tensor again.
std::vector<TensorClass> classes_in_items(const Checkpoint& checkpoint);

}  // namespace shw
